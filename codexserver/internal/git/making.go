package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
)

// making is the end of the name of the mark of a worktree that is being made. Its process has it locked. So what a killed
// one has left is known from worktrees without a record, which older versions made.
const making = ".making"

// mark marks a worktree that is about to be made, which is whole, or gone, when done is called.
func (w *Worktree) mark(ctx context.Context) (done func(), err error) {
	data, err := json.Marshal(w.Record)
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(filepath.Dir(w.Path))
	if err != nil {
		return nil, err
	}
	name := filepath.Base(w.Path) + making
	f, err := safefile.OpenIn(dir, name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	done = func() { // what it leaves the next server removes
		_ = errors.Join(f.Close(), dir.Remove(name), dir.Close())
	}
	for err = safefile.Lock(f); errors.Is(err, safefile.ErrLocked); err = safefile.Lock(f) {
		if err = pause(ctx); err != nil { // another process looks at it
			break
		}
	}
	if err == nil {
		err = f.Overwrite(string(data))
	}
	if err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// Unmake removes the worktrees below the folder trees that processes were making when they were killed.
func (s Scratch) Unmake(ctx context.Context, trees string) (err error) {
	dir, err := os.OpenRoot(trees)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	for _, e := range entries {
		name, marked := strings.CutSuffix(e.Name(), making)
		if !marked || !treeName.Get().MatchString(name) {
			continue
		}
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		w := &Worktree{Path: filepath.Join(trees, name), scratch: s}
		err = errors.Join(err, w.unmake(ctx, dir, e.Name()))
	}
	return err
}

// unmake removes a worktree with a mark, unless its process lives.
func (w *Worktree) unmake(ctx context.Context, dir *os.Root, mark string) error {
	f, err := safefile.OpenIn(dir, mark, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, safefile.ErrReplaced) {
		return nil // its process has removed it
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if safefile.Lock(f) != nil {
		return nil // its process lives
	}
	data, err := f.ReadAll(maxSmallFile)
	if err != nil {
		return err
	}
	if json.Unmarshal(data, &w.Record) != nil || w.Branch != branchPrefix+filepath.Base(w.Path) {
		return nil // it is being written, and nothing is made before
	}
	if !exists(w.recordFile()) {
		err = os.RemoveAll(w.Path)
		failed := w.Remove(ctx) // also of what git had not made yet
		if exists(filepath.Join(w.CommonDir, "worktrees", filepath.Base(w.Path))) {
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, f.Close(), dir.Remove(mark))
}
