//go:build unix

package run_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// TestLookPath finds programs as a shell does: what is not a file that may be executed is passed over, and so are
// relative folders in PATH.
func TestLookPath(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"a/folder", "a/both", "b", "work"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, mode := range map[string]os.FileMode{"a/text": 0o644, "a/first": 0o755, "b/first": 0o755, "b/both": 0o755, "b/text": 0o755, "a/data": 0o644, "work/own": 0o755} {
		if err := os.WriteFile(filepath.Join(top, file), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	a, b, work := filepath.Join(top, "a"), filepath.Join(top, "b"), filepath.Join(top, "work")
	env := []string{"PATH=" + b, "PATH=.:" + a + ":" + b}
	for _, tt := range []struct {
		program, want string
		err           error
	}{
		{"first", filepath.Join(a, "first"), nil},
		{"both", filepath.Join(b, "both"), nil}, // a folder in a
		{"text", filepath.Join(b, "text"), nil}, // not executable in a
		{"folder", "", syscall.EACCES},
		{"data", "", syscall.EACCES},
		{"own", "", syscall.ENOENT}, // only in the current folder
		{"none", "", syscall.ENOENT},
		{"./own", filepath.Join(work, "own"), nil},
		{"../a/first", filepath.Join(a, "first"), nil},
		{"../a/folder", filepath.Join(a, "folder"), syscall.EACCES},
		{filepath.Join(a, "data"), filepath.Join(a, "data"), syscall.EACCES},
	} {
		got, err := run.LookPath(tt.program, work, env)
		if !errors.Is(err, tt.err) || got != tt.want {
			t.Errorf("%s: %q, %v; want %q, %v", tt.program, got, err, tt.want, tt.err)
		}
	}
}
