package taskfile

import (
	"errors"
	"fmt"
	"time"

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
	switch t.Status {
	case Working, InputRequired, Completed, Cancelled, Failed:
	default:
		return fmt.Errorf("member status: %.100q is unknown", t.Status)
	}
	for _, m := range []struct {
		name string
		time time.Time
		may  bool // be zero
	}{
		{"created", t.Created, false},
		{"updated", t.Updated, false},
		{"expires", t.Expires, !t.Status.Finished()},
		{"server.started", t.Server.Started, false},
	} {
		if m.time.IsZero() && !m.may {
			return fmt.Errorf("member %s is missing", m.name)
		}
	}
	if !isSecret(t.Server.Instance) {
		return errors.New("member server.instance is not made of letters and digits, or too short or long")
	}
	if t.Did != nil {
		if err := checkObject("did", t.Did, !t.Status.Finished()); err != nil {
			return err
		}
	}
	if t.Resume != nil {
		if err := checkObject("resume", t.Resume, !t.Status.Finished()); err != nil {
			return err
		}
	}
	if err := checkObject("result", t.Result, t.Status == Completed); err != nil {
		return err
	}
	return checkObject("error", t.Error, t.Status == Failed)
}

// checkObject checks that a member is an object if want is true, and is missing otherwise.
func checkObject(name string, v jsontext.Value, want bool) error {
	switch {
	case want && v.Kind() != jsontext.KindBeginObject:
		return fmt.Errorf("member %s is not an object", name)
	case !want && v != nil:
		return fmt.Errorf("member %s must be missing with this status", name)
	}
	return nil
}
