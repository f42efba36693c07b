package taskfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// ErrBusy reports a task that another server takes over at this moment, or serves.
var ErrBusy = errors.New("another server has the task")

// guardFile is locked while a server takes over tasks.
const guardFile = "guard"

// Adopt makes this store serve an unfinished task whose server is [Gone], and returns it as
// written. Of several servers that try, one succeeds; for the others the error wraps
// [ErrBusy]. It is [ErrNotServed] for a finished task.
func (s *Store) Adopt(id string) (t Task, err error) {
	if checkID(id) != nil {
		return Task{}, fmt.Errorf("%w %.200q", ErrUnknown, id)
	}
	err = s.change("taking over", id, func(root *os.Root, serves bool) (bool, error) {
		err := claim.Alone(filepath.Join(s.dir, guardFile), func() (err error) {
			t, err = s.adopt(root, id)
			return err
		})
		if errors.Is(err, safefile.ErrLocked) {
			err = ErrBusy
		}
		return serves || err == nil, err
	})
	return t, err
}

// adopt makes this store the server of a task, in its file.
func (s *Store) adopt(root *os.Root, id string) (Task, error) {
	t, owner, err := s.load(root, id)
	switch {
	case err != nil:
		return Task{}, err
	case owner == NoOwner:
		return t, ErrNotServed
	case owner != Gone:
		return t, ErrBusy
	}
	t = s.stamp(t)
	return t, s.put(root, t)
}

// Return gives a task up that was adopted, for its server from before. The owner is [Gone]
// again.
func (s *Store) Return(t Task, before Server) error {
	return s.change("returning", t.ID, func(root *os.Root, _ bool) (bool, error) {
		t.Server = before
		return false, s.put(root, t)
	})
}

// Remove removes a task that this store serves, which no client knows.
func (s *Store) Remove(id string) error {
	return s.change("removing", id, func(root *os.Root, serves bool) (bool, error) {
		if !serves {
			return false, ErrNotServed
		}
		return false, s.remove(root, id)
	})
}
