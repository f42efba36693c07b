//go:build unix

package paths_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestFollow follows links to what is there and to what is missing, and as many as the kernel does.
func TestFollow(t *testing.T) {
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	links := map[string]string{
		"dir/up": "..", "absolute": filepath.Join(top, "dir"), "deep": "dir/sub", "behind": "deep/../file", "slash": "missing/", "to": "missing/a/../b", "0": ".",
	}
	for i := range 40 {
		links[fmt.Sprint(i+1)] = fmt.Sprint(i)
	}
	must.OK(t, os.MkdirAll(filepath.Join(top, "dir/sub"), 0o700))
	for name, to := range links {
		must.OK(t, os.Symlink(filepath.FromSlash(to), filepath.Join(top, name)))
	}
	for path, want := range map[string]string{
		"dir": "dir", "dir/up/dir/up": ".", "absolute/sub": "dir/sub", "deep/": "dir/sub", "39": ".", "40": "too many symbolic links",
		"behind": "missing dir/file", "none/at/all": "missing none/at/all", "absolute/none": "missing dir/none", "slash": "missing missing", "to": "missing",
	} {
		real, info, err := paths.Follow(filepath.Join(top, path), func(string, fs.FileInfo) error { return nil })
		got, _ := filepath.Rel(top, real)
		var other *fs.PathError
		switch {
		case errors.Is(err, fs.ErrNotExist) && real == "":
			got = "missing"
		case errors.Is(err, fs.ErrNotExist):
			got = "missing " + got
		case errors.As(err, &other):
			got = other.Err.Error()
		case !info.IsDir():
			t.Errorf("%s is no folder", path)
		}
		if got != filepath.FromSlash(want) {
			t.Errorf("%s leads to %q, want %q: %v", path, got, want, err)
		}
	}
	if _, _, err := paths.Follow("dir", nil); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a relative path: %v", err)
	}
}

// TestFollowReplaced follows a path while its last folder becomes a link.
func TestFollowReplaced(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "dir")
	seen := 0
	_, _, err := paths.Follow(dir, func(at string, _ fs.FileInfo) error {
		if seen++; at == filepath.Dir(dir) {
			return os.Mkdir(dir, 0o700)
		}
		if at == dir {
			return errors.Join(os.Remove(dir), os.Symlink("/", dir))
		}
		return nil
	})
	if err != nil {
		t.Errorf("after %d: %v", seen, err)
	}
}
