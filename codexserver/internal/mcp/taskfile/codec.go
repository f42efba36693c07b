package taskfile

import (
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxFile is the size of the largest file of a task in bytes.
const maxFile = 64 << 20

// encode returns the content of the task's file.
func encode(t Task) ([]byte, error) {
	if err := check(t); err != nil {
		return nil, err
	}
	data, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, &safefile.SizeError{Path: fileName(t.ID), Max: maxFile}
	}
	return data, nil
}

// decode decodes the content of a task's file. Its errors name the member.
func decode(data []byte) (Task, error) {
	var t Task
	if err := json.Unmarshal(data, &t, json.RejectUnknownMembers(true)); err != nil {
		return Task{}, err
	}
	if err := check(t); err != nil {
		return Task{}, err
	}
	return t, nil
}

func check(t Task) error {
	if err := checkID(t.ID); err != nil {
		return fmt.Errorf("member id: %w", err)
	}
	finished := t.Status.Finished()
	if !finished && t.Status != Working && t.Status != InputRequired {
		return fmt.Errorf("member status: %.100q is unknown", t.Status)
	}
	for _, m := range []struct {
		name    string
		missing bool
	}{
		{"created", t.Created.IsZero()}, {"updated", t.Updated.IsZero()}, {"expires", finished && t.Expires.IsZero()},
		{"server.started", t.Server.Started.IsZero()}, {"result", t.Status == Completed && t.Result == nil},
	} {
		if m.missing {
			return fmt.Errorf("member %s is missing", m.name)
		}
	}
	if !isSecret(t.Server.Instance) {
		return errors.New("member server.instance is not made of letters and digits, or too short or long")
	}
	for _, m := range []struct {
		name  string
		value jsontext.Value
		may   bool // be there with this status
	}{{"did", t.Did, !finished}, {"resume", t.Resume, !finished}, {"result", t.Result, t.Status == Completed}} {
		switch {
		case m.value != nil && !m.may:
			return fmt.Errorf("member %s must be missing with this status", m.name)
		case m.value != nil && m.value.Kind() != jsontext.KindBeginObject:
			return fmt.Errorf("member %s is not an object", m.name)
		}
	}
	return nil
}
