//go:build unix

package git_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// TestScratchSweep checks that only folders are removed that are ours, not new, and not locked by a process
// that uses them.
func TestScratchSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"git-left", "git-used", "git-new", "arg0", "trail-1"} {
		path, then := filepath.Join(dir, name), time.Now().Add(-2*time.Minute)
		err := os.MkdirAll(filepath.Join(path, "git"), 0o700)
		if err == nil && name != "git-new" {
			err = os.Chtimes(path, then, then)
		}
		if err != nil {
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
	if err := (git.Scratch{Dir: dir}).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, kept := range map[string]bool{"git-left": false, "git-used": true, "git-new": true, "arg0": true, "trail-1": true, "git-link": true} {
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) == kept {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (git.Scratch{Dir: filepath.Join(dir, "missing")}).Sweep(t.Context()); err != nil {
		t.Error(err)
	}
}
