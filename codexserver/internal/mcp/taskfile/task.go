package taskfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// Keep is how long a finished task is kept.
	Keep = 24 * time.Hour
	// KeepGone is how long an unfinished task is kept after its server has ended, from its last change on.
	KeepGone = 7 * 24 * time.Hour
)

// Finished reports whether the task no longer changes.
func (t *Task) Finished() bool {
	return t.Status == modern.TaskStatusCompleted || t.Status == modern.TaskStatusCancelled
}

// Expires returns when the task is removed, unless a server serves it.
func (t *Task) Expires() time.Time {
	if t.Finished() {
		return t.Updated.Add(Keep)
	}
	return t.Updated.Add(KeepGone)
}

// Task is a task as in its file.
type Task struct {
	// ID is made by [NewID].
	ID string `json:"id"`
	// Principal is the owner of the task, or "" if the server has one user.
	Principal string `json:"principal,omitzero"`
	// Tool is the name of the called tool.
	Tool string `json:"tool"`
	// Created and Updated are set by the store.
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	// Status is the progress of the task. A task never fails: its result says so.
	Status modern.TaskStatus `json:"status"`
	// Message describes the status to a person.
	Message string `json:"message,omitzero"`
	// Did is what an unfinished task has done so far. It is for the client if the server ends
	// before the task.
	Did protocol.TurnResult `json:"did,omitzero"`
	// Resume is what another server needs to continue an unfinished task, or nil if no other does.
	Resume *Resume `json:"resume,omitzero"`
	// Result is the CallToolResult of a completed task, a JSON object.
	Result jsontext.Value `json:"result,omitzero"`
	// Server is the server that serves or served the task. The store sets it.
	Server Server `json:"server"`
}

// Resume is what another server needs to continue a task.
type Resume struct {
	// Turn is what it needs to know of the turn.
	Turn turn.Resume `json:"turn"`
	// Form is true if the client can be asked, and Client is its name. Other clients get the questions of a
	// turn in the background.
	Form   bool   `json:"form,omitzero"`
	Client string `json:"host,omitzero"`
	// Background is true for a turn in the background.
	Background bool `json:"background,omitzero"`
	// Life is how many servers have continued the turn, and Ended is how many have ended while it did not wait
	// for a person, who may be the reason.
	Life  int `json:"life,omitzero"`
	Ended int `json:"ended,omitzero"`
}

// Server is a process that serves tasks.
type Server struct {
	// Instance identifies the server's lock.
	Instance string `json:"instance"`
	// PID identifies the process to a person.
	PID int `json:"pid"`
}

// Owner is the kind of server that serves a task.
type Owner int

const (
	// NoOwner is the owner of a finished task.
	NoOwner Owner = iota
	// Self is the store itself.
	Self
	// Other is another running server, see [Task.Server].
	Other
	// Gone is a server that ended before its task finished.
	Gone
)

const (
	// maxFile is the size of the largest file of a task in bytes.
	maxFile = 64 << 20
	// maxID is the longest id that clients accept.
	maxID = 128
)

// NewID returns the id of a new task: the id of its thread, a dot, and a random part that
// cannot be guessed. The thread's id must consist of letters, digits, - and _.
func NewID(thread string) (string, error) {
	id := thread + "." + rand.Text()
	if err := checkID(id); err != nil {
		return "", fmt.Errorf("making the id of a task of thread %.200q: %w", thread, err)
	}
	return id, nil
}

// checkID is strict because an id is part of a file's name. With the files' prefix the name
// cannot be one that Windows reserves.
func checkID(id string) error {
	if len(id) > maxID || !anID.Get().MatchString(id) {
		return fmt.Errorf("want letters, digits, - and _, a dot, and at least 26 letters and digits, "+
			"%d bytes in all", maxID)
	}
	return nil
}

// anID is an id with its random part, which has at least the length of [rand.Text], and aSecret such a part alone.
var (
	anID    = lazyregexp.Regexp{Text: `\A[A-Za-z0-9_-]+\.[A-Za-z0-9]{26,}\z`}
	aSecret = lazyregexp.Regexp{Text: `\A[A-Za-z0-9]{26,128}\z`}
)

// encode returns the content of the task's file.
func encode(t Task) ([]byte, error) {
	data, err := json.Marshal(t, jsontext.AllowInvalidUTF8(true)) // a client chooses its name
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFile:
		return nil, &safefile.SizeError{Path: fileName(t.ID), Max: maxFile}
	}
	return data, check(t)
}

// decode decodes the content of a task's file. Its errors name the member.
func decode(data []byte) (Task, error) {
	var t Task
	if err := json.Unmarshal(data, &t, json.RejectUnknownMembers(true)); err != nil {
		return Task{}, err
	}
	return t, check(t)
}

func check(t Task) error {
	if err := checkID(t.ID); err != nil {
		return fmt.Errorf("member id: %w", err)
	}
	if !t.Finished() && t.Status != modern.TaskStatusWorking && t.Status != modern.TaskStatusInputRequired {
		return fmt.Errorf("member status: %.100q is unknown", t.Status)
	}
	for _, m := range []struct {
		wrong bool
		words string
	}{
		{
			!aSecret.Get().MatchString(t.Server.Instance),
			"server.instance is not made of letters and digits, or too short or long",
		},
		{
			(t.Status == modern.TaskStatusCompleted) != (t.Result != nil),
			"result must be there with the status completed alone",
		},
		{t.Result != nil && t.Result.Kind() != jsontext.KindBeginObject, "result is not an object"},
	} {
		if m.wrong {
			return errors.New("member " + m.words)
		}
	}
	return nil
}
