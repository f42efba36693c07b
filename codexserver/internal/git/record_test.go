//go:build unix

package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestFindWorktree finds worktrees by their records, whatever is in the worktrees.
func TestFindWorktree(t *testing.T) {
	r := newRepo(t)
	r.write("sub/a", "one\n")
	first := r.commit("x")
	w, trees, err := r.worktree(t.Context(), filepath.Join(r.dir, "sub"))
	must.OK(t, err, w.Owner("one thread"))
	must.OK(t, os.WriteFile(filepath.Join(w.Path, ".git"), []byte("gitdir: /elsewhere\n"), 0o600))
	home := filepath.Dir(trees)
	place := git.Scratch{Dir: filepath.Join(home, "tmp")}
	common := filepath.Join(r.dir, ".git")
	want := git.Record{Root: r.dir, CommonDir: common, GitDir: filepath.Join(common, "worktrees", filepath.Base(w.Path)),
		Cwd: w.Cwd, Branch: "codex/" + filepath.Base(w.Path), Base: r.git("rev-parse", first), Thread: "one thread"}
	must.OK(t, os.Symlink(trees, filepath.Join(home, "link")))
	for _, cwd := range []string{w.Path, w.Cwd, filepath.Join(home, "link", filepath.Base(w.Path), "sub")} {
		found, err := place.FindWorktree(trees, cwd)
		must.OK(t, err)
		must.Equal(t, "the record of "+cwd, want, found.Record)
		must.Equal(t, "the path of "+cwd, w.Path, found.Path)
		must.Equal(t, "the folder of "+cwd, filepath.Join(w.Path, "sub"), found.Cwd)
	}
	for _, cwd := range []string{trees, home, r.dir, w.Path + "/../12345678", filepath.Join(trees, "tree")} {
		if found, err := place.FindWorktree(trees, cwd); found != nil || err != nil {
			t.Errorf("%s: %v, %v", cwd, found, err)
		}
	}
	record := w.Path + ".json"
	text := string(must.Get(os.ReadFile(record))(t))
	for _, change := range [][2]string{{"worktrees/", "other/"}, {"codex/", "main"}, {want.Base, "HEAD"}, {common, "."}, {"{", "["}} {
		must.OK(t, os.WriteFile(record, []byte(strings.Replace(text, change[0], change[1], 1)), 0o600))
		if found, err := place.FindWorktree(trees, w.Path); err == nil {
			t.Errorf("with %q in place of %q: %+v", change[1], change[0], found.Record)
		}
	}
	must.OK(t, os.WriteFile(record, []byte(text), 0o600))
	found := must.Get(place.FindWorktree(trees, w.Path))(t)
	must.OK(t, found.Remove(t.Context()))
	if rest := left(t, trees); len(rest) > 0 {
		t.Errorf("left: %v", rest)
	}
	must.Equal(t, "the branches that are left", "", r.git("branch", "--list", "codex/*"))
}
