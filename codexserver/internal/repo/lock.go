package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// writeNew makes a file and fails if it exists.
func writeNew(path string, data []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (s Store) lockPath(name string) string { return filepath.Join(s.Records, "locks", name) }

// tryLock locks a name against other processes and other callers in this one. The error
// wraps [safefile.ErrLocked] if it is locked already.
func (s Store) tryLock(name string) (unlock func(), err error) {
	return s.locked(name, func(f *os.File) error { return safefile.Lock(f) })
}

// lock waits until it has locked a name. If that was the name of a worktree that another caller has
// removed meanwhile, there is no record of it.
func (s Store) lock(ctx context.Context, name string) (unlock func(), err error) {
	unlock, err = s.locked(name, func(f *os.File) error { return claim.Wait(ctx, f) })
	if errors.Is(err, safefile.ErrLocked) {
		return nil, fmt.Errorf("worktree: wait for another call to finish: %w", context.Cause(ctx))
	}
	return unlock, err
}

func (s Store) locked(name string, lock func(*os.File) error) (unlock func(), err error) {
	path := s.lockPath(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Closing it alone would leave the lock to a process that is about to be started.
	return func() { _ = errors.Join(safefile.Unlock(f), f.Close()) }, nil
}
