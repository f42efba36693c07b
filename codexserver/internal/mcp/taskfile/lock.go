package taskfile

import (
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"io/fs"
	"os"
)

func lockName(instance string) string { return lockPrefix + instance }

// join makes and opens the folder, and locks this server's file. It checks each time that
// the file still exists: without it other processes would conclude that the server is gone.
func (s *Store) join() (*os.Root, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := makeFolder(s.dir); err != nil {
		return nil, err
	}
	root, err := s.open()
	if err != nil {
		return nil, err
	}
	if err := s.hold(root); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the folder of tasks: %w", err), root.Close())
	}
	return root, nil
}

func (s *Store) hold(root *os.Root) error {
	name := lockName(s.server.Instance)
	if s.lock != nil {
		mine, err := s.lock.Stat()
		if err != nil {
			return err
		}
		if found, err := root.Lstat(name); err == nil && os.SameFile(mine, found) {
			return nil
		}
		_ = s.lock.Close()
		s.lock = nil
		_ = root.Remove(name) // a file that replaced it, if any
	}
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := safefile.Lock(f); err != nil {
		return errors.Join(err, f.Close(), root.Remove(name))
	}
	s.lock = f
	return nil
}

// leave releases this server's lock. The caller holds mu.
func (s *Store) leave() error {
	if s.lock == nil {
		return nil
	}
	var removed error
	if root, err := s.open(); err == nil {
		removed = errors.Join(root.Remove(lockName(s.server.Instance)), root.Close())
	}
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}
	err := errors.Join(removed, s.lock.Close())
	s.lock = nil
	return err
}

// owner returns the owner of a server's unfinished tasks.
func (s *Store) owner(root *os.Root, instance string) (Owner, error) {
	s.mu.Lock()
	self := s.lock != nil && instance == s.server.Instance
	s.mu.Unlock()
	if self {
		return Self, nil
	}
	f, err := safefile.OpenIn(root, lockName(instance), os.O_RDONLY)
	var kind *safefile.KindError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &kind): // not the file of a server
		return Gone, nil
	case err != nil:
		return NoOwner, err
	}
	defer f.Close()
	switch err := safefile.Share(f); {
	case err == nil:
		return Gone, nil
	case errors.Is(err, safefile.ErrLocked):
		return Other, nil
	default:
		return NoOwner, err
	}
}
