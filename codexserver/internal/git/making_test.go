//go:build unix

package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// TestUnmake removes what a process has left that was killed while it made a worktree, and nothing else.
func TestUnmake(t *testing.T) {
	first := newRepo(t)
	first.write("a", "one\n")
	first.commit("x")
	noRecord := func(_ *fixture, w *git.Worktree) { must.OK(t, os.Remove(w.Path+".json")) }
	gone := func(r *fixture, w *git.Worktree) {
		must.OK(t, os.Remove(w.Path+".json"), os.RemoveAll(w.Path))
		r.git("worktree", "prune")
		r.git("branch", "-q", "-D", w.Branch)
	}
	rows := []struct {
		name   string
		mark   string // "" is that of the worktree, "-" none
		locked bool   // by a process that lives
		lay    func(r *fixture, w *git.Worktree)
		want   string // what is left: folder, record, mark, branch
	}{
		{"killed", "", false, noRecord, ""},
		{"killed while git worked", "", false, func(r *fixture, w *git.Worktree) {
			noRecord(r, w)
			r.git("worktree", "lock", "--reason", "initializing", w.Path)
		}, ""},
		{"killed before git had the worktree", "", false, func(r *fixture, w *git.Worktree) {
			gone(r, w)
			must.OK(t, os.Mkdir(w.Path, 0o700))
		}, ""},
		{"killed before the folder", "", false, gone, ""},
		{"killed when it was made", "", false, func(*fixture, *git.Worktree) {}, "folder record branch"},
		{"being made", "", true, noRecord, "folder mark branch"},
		{"being marked", "\n", false, noRecord, "folder mark branch"},
		{"the mark of another one", `{"branch":"main"}`, false, noRecord, "folder mark branch"},
		{"of an older version", "-", false, noRecord, "folder branch"},
	}
	for i, r := range first.copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			r := r.in(t)
			w, trees, err := r.worktree(t.Context(), r.dir)
			must.OK(t, err)
			mark := w.Path + ".making"
			if _, err := os.Stat(mark); err == nil {
				t.Error("a worktree that is made has a mark")
			}
			tt.lay(r, w)
			if tt.mark == "" {
				tt.mark = string(must.Get(json.Marshal(w.Record))(t))
			}
			if tt.mark != "-" {
				must.OK(t, os.WriteFile(mark, []byte(tt.mark), 0o600))
			}
			if tt.locked {
				f := must.Get(os.Open(mark))(t)
				defer f.Close()
				must.OK(t, safefile.Lock(f))
			}
			scratch := git.Scratch{Dir: filepath.Join(filepath.Dir(trees), "tmp")}
			must.OK(t, scratch.Unmake(t.Context(), trees))
			var rest []string
			for _, one := range []struct{ name, path string }{{"folder", w.Path}, {"record", w.Path + ".json"}, {"mark", mark}} {
				if _, err := os.Lstat(one.path); err == nil {
					rest = append(rest, one.name)
				}
			}
			if r.git("branch", "--list", w.Branch) != "" {
				rest = append(rest, "branch")
			}
			must.Equal(t, "left", tt.want, strings.Join(rest, " "))
			must.Equal(t, "worktrees of git", strings.Contains(tt.want, "branch"), strings.Count(r.git("worktree", "list"), "\n") > 0)
		})
	}
}
