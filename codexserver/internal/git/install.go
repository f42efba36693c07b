package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// patienceForLocks is how long a commit waits for another git that writes the index, and between tries.
const (
	patienceForLocks = 10 * time.Second
	betweenTries     = 20 * time.Millisecond
)

// hold keeps other servers from committing in a worktree. Its file says what is being committed: who finds it without its
// process does the rest, see [Scratch.Mend].
type hold struct {
	dir  *os.Root // the folder of all worktrees
	name string   // of the file in it
	file *safefile.File
}

// hold waits until no other process commits in the worktree.
func (w *Worktree) hold(ctx context.Context) (*hold, error) {
	for {
		h, err := w.tryHold(os.O_CREATE)
		if !errors.Is(err, safefile.ErrLocked) && !errors.Is(err, safefile.ErrReplaced) {
			return h, err
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(betweenTries):
		return nil
	}
}

// tryHold fails with [safefile.ErrLocked] while another process commits.
func (w *Worktree) tryHold(flag int) (*hold, error) {
	dir, err := os.OpenRoot(filepath.Dir(w.Path))
	if err != nil {
		return nil, err
	}
	h := &hold{dir: dir, name: filepath.Base(w.Path) + ".commit"}
	if h.file, err = safefile.OpenIn(dir, h.name, os.O_RDWR|flag); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	if err = safefile.Lock(h.file); err == nil {
		if named, _ := dir.Lstat(h.name); os.SameFile(h.file.Info(), named) {
			return h, nil
		}
		err = safefile.ErrLocked // who had it has removed it
	}
	return nil, errors.Join(err, h.file.Close(), dir.Close())
}

// release ends the hold: nothing is left to be done.
func (h *hold) release() { _ = errors.Join(h.dir.Remove(h.name), h.file.Close(), h.dir.Close()) }

// Mend finishes the commits of processes that were killed, in the worktrees below the folder trees, and removes the records of
// worktrees that are gone. Withheld is for each folder that of [CommitOptions].
func (s Scratch) Mend(
	ctx context.Context, trees string, withheld func(dir string) func(path string) error,
) (err error) {
	entries, err := os.ReadDir(trees)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		name, isRecord := strings.CutSuffix(e.Name(), ".json")
		if !isRecord {
			continue
		}
		w, failed := s.FindWorktree(trees, filepath.Join(trees, name))
		if failed == nil && w != nil {
			failed = w.mend(ctx, withheld)
		}
		err = errors.Join(err, failed)
	}
	return err
}

func (w *Worktree) mend(ctx context.Context, withheld func(dir string) func(path string) error) error {
	if !exists(w.Path) && !exists(w.GitDir) {
		return w.forget()
	}
	h, err := w.tryHold(0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, safefile.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.release()
	subject, _ := h.file.ReadAll(maxSmallFile)
	o := &CommitOptions{Thread: w.Thread, Withheld: withheld(w.Cwd)}
	if _, err = w.commit(ctx, Subject(string(subject)), o); err != nil {
		return fmt.Errorf("the worktree %s: nothing was committed: %w", w.Path, err)
	}
	return nil
}

// The names of an index that is being written. One that a killed process has left is ours if both names are of one file.
const (
	newIndex  = "index.codex-mcp"
	indexLock = "index.lock"
)

// install puts the index at a path in the place of the worktree's, as git would do it.
func (d *draft) install(ctx context.Context, path string) (err error) {
	data, err := safefile.Read(path, maxIndex)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(d.gitDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := clearIndex(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clearIndex(dir)) }()
	mode := fs.FileMode(0o644)
	if before, err := dir.Lstat("index"); err == nil {
		mode = before.Mode().Perm()
	}
	if err := write(dir, data, mode, info.ModTime()); err != nil {
		return err
	}
	held := fmt.Errorf("another git holds %s", filepath.Join(d.gitDir, indexLock))
	wait, cancel := context.WithTimeoutCause(ctx, patienceForLocks, held)
	defer cancel()
	for {
		err := dir.Link(newIndex, indexLock)
		if err == nil {
			return dir.Rename(indexLock, "index")
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := pause(wait); err != nil {
			return err
		}
	}
}

// write writes the new index. Its time is the one by which git knows what may have changed since.
func write(dir *os.Root, data []byte, mode fs.FileMode, at time.Time) error {
	f, err := dir.OpenFile(newIndex, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Chtimes(newIndex, at, at)
	}
	return err
}

// clearIndex removes what a killed process or this one has left of a new index.
func clearIndex(dir *os.Root) error {
	left, err := dir.Lstat(newIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if lock, err := dir.Lstat(indexLock); err == nil && os.SameFile(left, lock) {
		if err := dir.Remove(indexLock); err != nil {
			return err
		}
	}
	return dir.Remove(newIndex)
}
