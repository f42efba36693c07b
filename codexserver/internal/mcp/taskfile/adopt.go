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
// written, and the server from before. Change changes the task before it is written; if it fails, nothing is. Of several
// servers that try, one succeeds; for the others the error wraps [ErrBusy]. It is [ErrNotServed] for a finished task.
func (s *Store) Adopt(id string, change func(*Task) error) (t Task, before Server, err error) {
	if checkID(id) != nil {
		return t, before, fmt.Errorf("%w %.200q", ErrUnknown, id)
	}
	err = s.change("taking over", id, func(root *os.Root, serves bool) (bool, error) {
		err := claim.Alone(filepath.Join(s.dir, guardFile), func() error {
			found, owner, err := s.load(root, id)
			switch {
			case err != nil:
				return err
			case owner == NoOwner:
				return ErrNotServed
			case owner != Gone:
				return ErrBusy
			}
			before = found.Server
			if err := change(&found); err != nil {
				return err
			}
			t = s.stamp(found)
			return s.put(root, t)
		})
		if errors.Is(err, safefile.ErrLocked) {
			err = ErrBusy
		}
		return serves || err == nil, err
	})
	return t, before, err
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
