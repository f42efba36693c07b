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
func (s *Store) Adopt(id string) (Task, error) {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return Task{}, os.ErrClosed
	}
	if checkID(id) != nil {
		return Task{}, fmt.Errorf("%w %.200q", ErrUnknown, id)
	}
	root, err := s.join()
	if err != nil {
		return Task{}, err
	}
	defer root.Close()
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
		return t, fmt.Errorf("taking over task %.200q: %w", id, ErrNotServed)
	case owner != Gone:
		return t, fmt.Errorf("taking over task %.200q: %w", id, ErrBusy)
	}
	before := t.Server
	t = s.stamp(t)
	data, err := encode(t)
	if err == nil {
		err = s.replace(root, id, data)
	}
	if err != nil {
		t.Server = before
		return t, fmt.Errorf("taking over a task: %w", err)
	}
	s.mu.Lock()
	s.unfinished[id] = &entry{}
	s.mu.Unlock()
	return t, nil
}

// Return gives a task up that was adopted, for its server from before. The owner is [Gone]
// again.
func (s *Store) Return(t Task, before Server) error {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return os.ErrClosed
	}
	s.forget(t.ID)
	t.Server = before
	data, err := encode(t)
	if err != nil {
		return err
	}
	root, err := s.join()
	if err != nil {
		return err
	}
	defer root.Close()
	return s.replace(root, t.ID, data)
}

// Remove removes a task that this store serves, which no client knows.
func (s *Store) Remove(id string) error {
	s.life.RLock()
	defer s.life.RUnlock()
	s.mu.Lock()
	served := s.unfinished[id] != nil
	s.mu.Unlock()
	if s.closed || !served {
		return fmt.Errorf("removing task %.200q: %w", id, ErrNotServed)
	}
	s.forget(id)
	root, err := s.join()
	if err != nil {
		return err
	}
	defer root.Close()
	return s.remove(root, id)
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
