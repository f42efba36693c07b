package paths_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
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
		must.Equal(t, fmt.Sprint(tt.path, tt.folder), tt.want, paths.Below(filepath.FromSlash(tt.path), filepath.FromSlash(tt.folder)))
		rel, ok := paths.Within(filepath.FromSlash(tt.path), filepath.FromSlash(tt.folder))
		if ok != tt.want || ok && filepath.Join(filepath.FromSlash(tt.folder), rel) != filepath.Clean(filepath.FromSlash(tt.path)) || !ok && rel != "" {
			t.Errorf("%s in %s: %q, %t", tt.path, tt.folder, rel, ok)
		}
	}
}
