package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Store keeps the worktrees of one user. Only trusted programs may write to its folders,
// except to the worktrees themselves.
type Store struct {
	// Trees is the absolute path of the folder with the worktrees, each in a folder of its
	// own. Records is the absolute path of the folder with their records.
	Trees, Records string
	// Programs finds git, see [Scratch].
	Programs *sandbox.Programs
}

// StoreIn returns the store in Codex's home. It does not use the folder worktrees there, from
// which Codex's own application removes old worktrees.
func StoreIn(home string) Store {
	return Store{Trees: filepath.Join(home, "codex-mcp-worktrees"), Records: filepath.Join(home, "codex-mcp-worktree-records")}
}

// How long one call may take.
const (
	createTimeout = 10 * time.Minute
	callTimeout   = 2 * time.Minute
)

// make makes the folders and returns the store by their real paths.
func (s Store) make() (Store, error) {
	for _, dir := range []*string{&s.Trees, &s.Records} {
		if !filepath.IsAbs(*dir) {
			return s, fmt.Errorf("worktree: the folder %q is not an absolute path", *dir)
		}
		if err := os.MkdirAll(*dir, 0o700); err != nil {
			return s, err
		}
		real, err := filepath.EvalSymlinks(*dir)
		if err != nil {
			return s, err
		}
		*dir = real
	}
	return s, nil
}

func (s Store) recordFolder(id string) string { return filepath.Join(s.Records, id) }

// Find returns the worktree of a thread. If it has none, the error wraps
// [fs.ErrNotExist].
func (s Store) Find(threadID string) (*Worktree, error) {
	all, err := s.List()
	for _, w := range all {
		if threadID != "" && w.record.ThreadID == threadID {
			return w, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("worktree of thread %q: %w", threadID, fs.ErrNotExist), err)
}

// List returns all worktrees that are in use. The error reports records that cannot be
// read; the other worktrees are returned nevertheless.
func (s Store) List() ([]*Worktree, error) {
	s, err := s.make()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.Records)
	if err != nil {
		return nil, err
	}
	var found []*Worktree
	var failed []error
	for _, entry := range entries {
		if !isID(entry.Name()) {
			continue
		}
		w, err := s.load(entry.Name())
		switch {
		case errors.Is(err, fs.ErrNotExist): // it is being made or removed
		case err != nil:
			failed = append(failed, err)
		case w.record.Phase == phaseUse:
			found = append(found, w)
		}
	}
	return found, errors.Join(failed...)
}

// Recover cleans up after processes that were killed: it removes worktrees that were being
// made or discarded, unless another process works on them.
func (s Store) Recover() error {
	s, err := s.make()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(s.Records)
	if err != nil {
		return err
	}
	var failed []error
	for _, entry := range entries {
		if !isID(entry.Name()) {
			continue
		}
		if err := s.finish(entry.Name()); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// finish removes a worktree that is not in use, unless a process works on it.
func (s Store) finish(id string) error {
	unlock, err := s.tryLock(id)
	if err != nil {
		if errors.Is(err, safefile.ErrLocked) {
			return nil
		}
		return err
	}
	defer unlock()
	w, err := s.load(id)
	if errors.Is(err, fs.ErrNotExist) { // nothing was made yet
		return errors.Join(os.RemoveAll(s.recordFolder(id)), os.Remove(s.lockPath(id)))
	}
	if err != nil || w.record.Phase == phaseUse {
		return err
	}
	return w.remove()
}
