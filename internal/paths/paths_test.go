package paths_test

import (
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/paths"
)

func TestBelow(t *testing.T) {
	for _, tt := range []struct {
		path, folder string
		want         bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/a/b", "/a/", true}, {"/a/b/../c", "/a", true}, {"/a/..b", "/a", true},
		{"/a", "/", true}, {"/", "/", true}, {"a/b", "a", true}, {"a", ".", true},
		{"/ab", "/a", false}, {"/a", "/a/b", false}, {"/a/../b", "/a", false}, {"/a/b/../..", "/a", false}, {"/", "/a", false},
		{"../a", ".", false}, {"/a", "a", false}, {"a", "/a", false}, {"..", ".", false},
	} {
		if got := paths.Below(filepath.FromSlash(tt.path), filepath.FromSlash(tt.folder)); got != tt.want {
			t.Errorf("%s in %s: %t", tt.path, tt.folder, got)
		}
		rel, ok := paths.Within(filepath.FromSlash(tt.path), filepath.FromSlash(tt.folder))
		if ok != tt.want || ok && filepath.Join(filepath.FromSlash(tt.folder), rel) != filepath.Clean(filepath.FromSlash(tt.path)) || !ok && rel != "" {
			t.Errorf("%s in %s: %q, %t", tt.path, tt.folder, rel, ok)
		}
	}
}
