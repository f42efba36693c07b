package taskfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// ErrBusy reports a task that another server takes over at this moment, or serves.
var ErrBusy = errors.New("another server has the task")

// guardFile is locked while a server takes over tasks. guardWait bounds the wait for it.
const (
	guardFile = "guard"
	guardWait = 2 * time.Second
)

// Adopt makes this store serve an unfinished task whose server is [Gone], and returns it as
// written. Of several servers that try, one succeeds; for the others the error wraps
// [ErrBusy]. It is [ErrNotServed] for a finished task.
func (s *Store) Adopt(id string) (t Task, err error) {
	if checkID(id) != nil {
		return Task{}, fmt.Errorf("%w %.200q", ErrUnknown, id)
	}
	err = s.change(id, os.ErrClosed, func(root *os.Root, serves bool) (bool, error) {
		t, err = s.adopt(root, id)
		return serves || err == nil, err
	})
	if err != nil {
		err = fmt.Errorf("taking over task %.200q: %w", id, err)
	}
	return t, err
}

// adopt makes this store the server of a task, in its file.
func (s *Store) adopt(root *os.Root, id string) (Task, error) {
	unguard, err := guard(root)
	if err != nil {
		return Task{}, err
	}
	defer unguard()
	t, owner, err := s.load(root, id, s.owner)
	switch {
	case err != nil:
		return Task{}, err
	case owner == NoOwner:
		return t, ErrNotServed
	case owner != Gone:
		return t, ErrBusy
	}
	before := t.Server
	t = s.stamp(t)
	if err := s.put(root, t); err != nil {
		t.Server = before
		return t, err
	}
	return t, nil
}

// Return gives a task up that was adopted, for its server from before. The owner is [Gone]
// again.
func (s *Store) Return(t Task, before Server) error {
	return s.change(t.ID, os.ErrClosed, func(root *os.Root, _ bool) (bool, error) {
		t.Server = before
		return false, s.put(root, t)
	})
}

// Remove removes a task that this store serves, which no client knows.
func (s *Store) Remove(id string) error {
	err := s.change(id, ErrNotServed, func(root *os.Root, serves bool) (bool, error) {
		if !serves {
			return false, ErrNotServed
		}
		return false, s.remove(root, id)
	})
	if err != nil {
		err = fmt.Errorf("removing task %.200q: %w", id, err)
	}
	return err
}

// guard keeps other servers from taking over tasks until unguard is called.
func guard(root *os.Root) (unguard func(), err error) {
	f, err := safefile.OpenIn(root, guardFile, os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) {
		made, cerr := root.OpenFile(guardFile, os.O_RDWR|os.O_CREATE, 0o600)
		if cerr != nil {
			return nil, cerr
		}
		_ = made.Close()
		f, err = safefile.OpenIn(root, guardFile, os.O_RDWR)
	}
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(context.Background(), guardWait)
	defer stop()
	err = claim.Wait(ctx, f)
	if errors.Is(err, safefile.ErrLocked) {
		err = ErrBusy
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // Close unlocks it
}
