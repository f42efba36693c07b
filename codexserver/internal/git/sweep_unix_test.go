//go:build unix

package git_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestScratchSweep checks that only folders are removed that are ours, and not locked by a process that uses them.
func TestScratchSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"git-left", "git-used", "arg0", "trail-1"} {
		must.OK(t, os.MkdirAll(filepath.Join(dir, name, "git"), 0o700))
	}
	must.OK(t, os.Symlink(t.TempDir(), filepath.Join(dir, "git-link")))
	f, err := os.Open(filepath.Join(dir, "git-used"))
	if err == nil {
		defer f.Close()
		err = safefile.Share(f)
	}
	must.OK(t, err)
	must.OK(t, (git.Scratch{Dir: dir}).Sweep(t.Context()))
	for name, kept := range map[string]bool{"git-left": false, "git-used": true, "arg0": true, "trail-1": true, "git-link": true} {
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) == kept {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (git.Scratch{Dir: filepath.Join(dir, "missing")}).Sweep(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestScratchSwept looks at a repository while others sweep all the time. A folder that they take
// before it is locked is made again.
func TestScratchSwept(t *testing.T) {
	r := newRepo(t)
	r.write("a", "one\n")
	r.commit("x")
	scratch := scratch(t)
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
		s, err := git.Look(t.Context(), r.dir, &git.Options{Scratch: scratch})
		must.OK(t, err)
		must.OK(t, s.Remove())
	}
}
