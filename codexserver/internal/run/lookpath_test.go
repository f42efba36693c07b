//go:build unix

package run_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestLookPath finds programs as a shell does: what is not a file that may be executed is passed over, and so are
// relative folders in PATH.
func TestLookPath(t *testing.T) {
	top := t.TempDir()
	boxtest.Lay(t, top, "a/folder/", "a/both/", "a/text", "a/first", "a/data", "b/first", "b/both", "b/text", "work/own")
	must.OK(t, errors.Join(os.Chmod(filepath.Join(top, "a/text"), 0o644), os.Chmod(filepath.Join(top, "a/data"), 0o644)))
	a, b, work := filepath.Join(top, "a"), filepath.Join(top, "b"), filepath.Join(top, "work")
	env := []string{"PATH=" + b, "PATH=.:" + a + ":" + b}
	for _, tt := range []struct {
		program, want string
		err           error
	}{
		{"first", filepath.Join(a, "first"), nil},
		{"both", filepath.Join(b, "both"), nil}, // a folder in a
		{"text", filepath.Join(b, "text"), nil}, // not executable in a
		{"folder", "", syscall.EACCES}, {"data", "", syscall.EACCES},
		{"own", "", syscall.ENOENT}, // only in the current folder
		{"none", "", syscall.ENOENT}, {"./own", filepath.Join(work, "own"), nil}, {"../a/first", filepath.Join(a, "first"), nil},
		{"../a/folder", filepath.Join(a, "folder"), syscall.EACCES},
		{filepath.Join(a, "data"), filepath.Join(a, "data"), syscall.EACCES},
	} {
		got, err := run.LookPath(tt.program, work, env)
		if !errors.Is(err, tt.err) || got != tt.want {
			t.Errorf("%s: %q, %v; want %q, %v", tt.program, got, err, tt.want, tt.err)
		}
	}
}
