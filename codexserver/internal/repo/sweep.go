package repo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Sweep removes the private git folders of processes that were killed.
func (s Scratch) Sweep(ctx context.Context) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var failed []error
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !e.IsDir() || !strings.HasPrefix(e.Name(), scratchPrefix) {
			continue
		}
		dir := filepath.Join(s.Dir, e.Name())
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		if safefile.Lock(f) == nil {
			failed = append(failed, removeAll(dir))
		}
		_ = f.Close()
	}
	return errors.Join(failed...)
}

// SweepUnused removes the worktrees that were not used for a time, unless that would lose work.
func (s Store) SweepUnused(ctx context.Context, age time.Duration) error {
	all, err := s.List()
	for _, w := range all {
		info, statErr := os.Stat(w.store.recordPath(w.record.ID))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if statErr != nil || time.Since(info.ModTime()) < age {
			continue
		}
		var loss *LossError
		if lost := w.Discard(ctx, ""); lost != nil && !errors.As(lost, &loss) {
			err = errors.Join(err, lost)
		}
	}
	return err
}

// Used records that the worktree is used now, for [Store.SweepUnused].
func (w *Worktree) Used() {
	now := time.Now()
	_ = os.Chtimes(w.store.recordPath(w.record.ID), now, now) // else it is only swept earlier
}
