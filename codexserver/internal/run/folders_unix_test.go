//go:build unix

package run_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestHoldFolders changes what a path leads to while it is held.
func TestHoldFolders(t *testing.T) {
	for name, tt := range map[string]struct {
		held   string
		change func(at string) error
		want   bool
	}{
		"nothing":               {"a/b", func(string) error { return nil }, false},
		"a file in it":          {"a/b", func(at string) error { return os.WriteFile(at+"/a/b/c", nil, 0o600) }, false},
		"a link":                {"a/b", func(at string) error { return relink(at+"/a/b", at) }, true},
		"a link above":          {"a/b", func(at string) error { return relink(at+"/a", at) }, true},
		"a link to the same":    {"a/b", func(at string) error { return relink(at+"/a", at+"/a2") }, true},
		"another folder":        {"a/b", func(at string) error { _ = os.Rename(at+"/a/b", at+"/c"); return os.Mkdir(at+"/a/b", 0o700) }, true},
		"none":                  {"a/b", func(at string) error { return os.Remove(at + "/a/b") }, true},
		"what was missing":      {"a/c", func(at string) error { return os.Mkdir(at+"/a/c", 0o700) }, false},
		"a link that leads off": {"a/c", func(at string) error { return os.Symlink(at+"/none", at+"/a/c") }, true},
		"a link for a missing":  {"a/c", func(at string) error { return os.Symlink(at, at+"/a/c") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			at := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			must.OK(t, os.MkdirAll(at+"/a/b", 0o700))
			h := run.HoldFolders(at, filepath.Join(at, tt.held))
			defer h.Close()
			must.OK(t, tt.change(at))
			if got := h.Replaced(); (got != "") != tt.want || got != "" && got != filepath.Join(at, tt.held) {
				t.Errorf("replaced: %q", got)
			}
		})
	}
}

// relink puts a link in the place of a folder, which gets a 2.
func relink(path, to string) error {
	if err := os.Rename(path, path+"2"); err != nil {
		return err
	}
	return os.Symlink(to, path)
}
