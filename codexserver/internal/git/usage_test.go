//go:build unix

package git_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestUsage counts a file once, whatever names it has, and nothing behind a link.
func TestUsage(t *testing.T) {
	trees := filepath.Join(t.TempDir(), "trees")
	if u, err := (git.Scratch{}).Usage(t.Context(), trees); err != nil || u.Bytes != 0 || len(u.Trees) != 0 {
		t.Errorf("without the folder: %+v, %v", u, err)
	}
	large := func(name string, size int) {
		must.OK(t, os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, make([]byte, size), 0o600))
	}
	const mb = 1 << 20
	outside := t.TempDir()
	large(filepath.Join(outside, "file"), 9*mb)
	large(filepath.Join(trees, "aaaaaaaa", "deep", "er", "file"), mb)
	large(filepath.Join(trees, "bbbbbbbb", "file"), 2*mb)
	must.OK(t, os.Link(filepath.Join(trees, "bbbbbbbb", "file"), filepath.Join(trees, "bbbbbbbb", "same")),
		os.Symlink(outside, filepath.Join(trees, "aaaaaaaa", "link")), os.Symlink(outside, filepath.Join(trees, "cccccccc")),
		os.Truncate(filepath.Join(trees, "aaaaaaaa", "deep", "er", "file"), 8*mb)) // a hole
	u := must.Get(git.Scratch{}.Usage(t.Context(), trees))(t)
	if len(u.Trees) != 2 || filepath.Base(u.Trees[0].Path) != "bbbbbbbb" || u.Cut || u.Bytes < 3*mb || u.Bytes > 3*mb+mb/4 {
		t.Errorf("%+v", u)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if u := must.Get(git.Scratch{}.Usage(ended, trees))(t); !u.Cut || u.Bytes > mb {
		t.Errorf("cut: %+v", u)
	}
}
