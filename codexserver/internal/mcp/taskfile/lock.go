package taskfile

import (
	"errors"
	"fmt"
	"os"

	"github.com/codexmcp/codexmcp/internal/claim"
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

func (s *Store) hold(root *os.Root) (err error) {
	if s.lock != nil {
		if s.lock.IsIn(root) {
			return nil
		}
		_ = s.lock.Close()
		_ = root.Remove(s.lock.Name()) // a file that replaced it, if any
	}
	s.lock, err = claim.New(root, lockName(s.server.Instance), "")
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
	switch lives, err := claim.Lives(root, lockName(instance)); {
	case err != nil:
		return NoOwner, err
	case lives:
		return Other, nil
	}
	return Gone, nil
}
