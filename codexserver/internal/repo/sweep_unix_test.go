//go:build unix

package repo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// TestScratchSweep checks that only folders are removed that are ours, and not locked by a process
// that uses them.
func TestScratchSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"git-left", "git-used", "arg0", "trail-1"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "git"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "git-link")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "git-used"))
	if err == nil {
		defer f.Close()
		err = safefile.Share(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := (repo.Scratch{Dir: dir}).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, kept := range map[string]bool{"git-left": false, "git-used": true, "arg0": true, "trail-1": true, "git-link": true} {
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) == kept {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (repo.Scratch{Dir: filepath.Join(dir, "missing")}).Sweep(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestScratchSwept looks at a repository while others sweep all the time. A folder that they take
// before it is locked is made again.
func TestScratchSwept(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": "one\n"})
	scratch := repo.Scratch{Dir: t.TempDir()}
	done := make(chan struct{})
	var sweeping sync.WaitGroup
	defer sweeping.Wait()
	defer close(done)
	for range 2 {
		sweeping.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = scratch.Sweep(t.Context())
				}
			}
		})
	}
	for range 50 {
		s, err := repo.Take(t.Context(), b.dir, scratch)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Remove(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSweepUnused checks that only worktrees are removed that were not used for long and have
// nothing to lose.
func TestSweepUnused(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": "one\n"})
	made := map[string]*repo.Worktree{}
	for _, id := range []string{"unused", "changed", "new", "used"} {
		w := b.create(repo.CreateOptions{Cwd: b.dir, ThreadID: id})
		made[id] = w
		if id != "new" {
			old := time.Now().Add(-48 * time.Hour)
			b.must(os.Chtimes(filepath.Join(b.store.Records, w.ID(), "record.json"), old, old))
		}
	}
	lay(t, made["changed"].Path(), map[string]string{"a": "work\n"})
	made["used"].Used()
	b.must(b.store.SweepUnused(t.Context(), 24*time.Hour))
	for id, w := range made {
		_, err := os.Stat(w.Path())
		if gone := errors.Is(err, fs.ErrNotExist); gone != (id == "unused") {
			t.Errorf("%s: %v", id, err)
		}
	}
}
