package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// ErrNotFound means that there is nothing with a name.
var ErrNotFound = errors.New("the store does not have it")

// Store keeps the records of tasks under names. It belongs to one process. A name is made of letters, digits, dots and
// slashes. The methods are safe for concurrent use; the caller orders the writes to one name.
type Store interface {
	// Put replaces what there is under a name. After it has returned nil the data survives the end of the
	// process, and readers see the old data or the new data, whole.
	Put(ctx context.Context, name string, data []byte) error
	// Read returns at most most bytes from an offset on, and nothing at the end. The error
	// wraps [ErrNotFound] if there is nothing with that name.
	Read(ctx context.Context, name string, at int64, most int) ([]byte, error)
	// Delete removes what there is under a name. It is nil if there is nothing.
	Delete(ctx context.Context, name string) error
}

// maxRead is how many bytes one read asks for.
const maxRead = 256 << 10

// record is a task as it is stored.
type record struct {
	User    string    `json:"user,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // zero until the end
	About   about     `json:"about"`
	End     end       `json:"end"`
}

// record returns the task as it is stored, without questions: nobody waits for the answers when it is
// read.
func (k *Task) record() record {
	r := record{User: k.user, About: k.is}
	if k.end != nil {
		r.End, r.Expires = *k.end, time.Now().Add(k.all.o.Keep)
	}
	return r
}

// name returns the name of a task in the store, or "" for what is no id.
func name(id string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" // of [rand.Text]
	if id == "" || len(id) > 64 || strings.Trim(id, alphabet) != "" {
		return ""
	}
	return "tasks/" + id
}

// put stores a record, if there is a store.
func (t *Tasks) put(ctx context.Context, r record) error {
	if t.o.Store == nil {
		return nil
	}
	raw, err := json.Marshal(r)
	if err == nil {
		err = t.o.Store.Put(context.WithoutCancel(ctx), name(r.About.ID), raw)
	}
	if err != nil {
		t.o.Logger.ErrorContext(ctx, "store a task", "task", r.About.ID, "err", err)
	}
	return err
}

var errUnknown = errors.New("unknown task")

// read returns the record of a task that is not in memory.
func (t *Tasks) read(ctx context.Context, id string) (*record, error) {
	file := name(id)
	if t.o.Store == nil || file == "" {
		return nil, errUnknown
	}
	var raw []byte
	for {
		part, err := t.o.Store.Read(ctx, file, int64(len(raw)), maxRead)
		switch {
		case errors.Is(err, ErrNotFound):
			return nil, errUnknown
		case err != nil:
			return nil, err
		}
		if len(part) == 0 {
			break
		}
		raw = append(raw, part...)
	}
	r := &record{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("the record of task %s: %w", id, err)
	}
	if r.About.Status != modern.TaskStatusWorking && time.Now().After(r.Expires) {
		t.remove(id)
		return nil, errUnknown
	}
	return r, nil
}

// remove removes a record from the store.
func (t *Tasks) remove(id string) {
	if err := t.o.Store.Delete(t.ctx, name(id)); err != nil {
		t.o.Logger.Error("remove a task", "task", id, "err", err)
	}
}
