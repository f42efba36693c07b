package box_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestProtected(t *testing.T) {
	top := t.TempDir()
	path := func(parts ...string) string { return filepath.Join(append([]string{top}, parts...)...) }
	worktree := path("main", ".git", "worktrees", "tree")
	boxtest.Lay(t, top, "main/.git/worktrees/tree/commondir=../..\n", "tree/.git=gitdir: "+worktree+"\n", "plain/", "broken/.git=nonsense", "empty/.git=gitdir: \n", "linked/.git -> ../tree/.git")
	s := box.New(box.Options{Protected: []string{path("home")}})
	got := s.Protected([]string{path("main"), path("tree"), path("plain"), path("broken"), path("empty"), path("linked")})
	want := []string{
		path("home"), path("main", ".git"), path("tree", ".git"), worktree, path("main", ".git"), path("plain", ".git"), path("broken", ".git"),
		path("empty", ".git"), path("linked", ".git"), path("tree", ".git"), worktree, path("main", ".git"),
	}
	must.Equal(t, "the folders", want, got)
}

// TestProtectedAroundARoot checks that a protected folder is left out when it contains a
// root, unless a root contains the folder. The server's own is never left out.
func TestProtectedAroundARoot(t *testing.T) {
	top := t.TempDir()
	home := filepath.Join(top, "home")
	root := filepath.Join(home, "trees", "one")
	boxtest.Lay(t, top, "home/trees/one/", "other/")
	own := filepath.Join(home, "own")
	s := box.New(box.Options{Protected: []string{home}, Sealed: []string{own}})
	for _, tt := range []struct{ roots, want []string }{
		{[]string{root}, []string{own, filepath.Join(root, ".git")}},
		{[]string{home}, []string{own, home, filepath.Join(home, ".git")}},
		{[]string{root, top}, []string{own, home, filepath.Join(root, ".git"), filepath.Join(top, ".git")}},
		{[]string{root, filepath.Join(top, "missing")}, []string{own, filepath.Join(root, ".git"), filepath.Join(top, "missing", ".git")}},
		{nil, []string{own, home}},
		{[]string{filepath.Join(top, "other")}, []string{own, home, filepath.Join(top, "other", ".git")}},
	} {
		must.Equal(t, fmt.Sprintf("%q", tt.roots), tt.want, s.Protected(tt.roots))
	}
}
