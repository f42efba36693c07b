package repo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
)

// rested returns a repository whose files changed before its index.
func rested(t *testing.T) *fixture {
	r := newRepo(t)
	for _, name := range []string{"a", "run", "c/d", "c/e"} {
		r.write(name, name+"\n")
	}
	if err := os.Chmod(filepath.Join(r.dir, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	r.commit("first")
	r.git("read-tree", "HEAD") // the index is younger than the files
	r.git("update-index", "--refresh")
	return r
}

// TestStill takes snapshots of a repository in which nothing is new. They make no folder for git
// before something has changed, and find the same changes as others.
func TestStill(t *testing.T) {
	in := func(r *fixture, name string) string { return filepath.Join(r.dir, name) }
	for name, tt := range map[string]struct {
		before func(r *fixture) error // makes the tree restless
		change func(r *fixture) error
		want   string
	}{
		"nothing": {},
		"an edit": {change: func(r *fixture) error { return os.WriteFile(in(r, "a"), []byte("b\n"), 0o644) }, want: "update >a +-\n"},
		"an edit, with its time": {change: func(r *fixture) error {
			info, err := os.Stat(in(r, "a"))
			if err == nil {
				err = os.WriteFile(in(r, "a"), []byte("b\n"), 0o644)
			}
			if err == nil {
				err = os.Chtimes(in(r, "a"), info.ModTime(), info.ModTime())
			}
			return err
		}, want: "update >a +-\n"},
		"a mode":          {change: func(r *fixture) error { return os.Chmod(in(r, "a"), 0o755) }, want: "update >a \n"},
		"a new file":      {change: func(r *fixture) error { return os.WriteFile(in(r, "c/new"), []byte("b\n"), 0o644) }, want: "add >c/new +\n"},
		"a new folder":    {change: func(r *fixture) error { r.write("new/x", "x"); return nil }, want: "add >new/x +\n"},
		"a deletion":      {change: func(r *fixture) error { return os.RemoveAll(in(r, "c")) }, want: "delete >c/d -\ndelete >c/e -\n"},
		"a link":          {change: func(r *fixture) error { return errors.Join(os.Remove(in(r, "link")), os.Symlink("b", in(r, "link"))) }, want: "update >link +-\n"},
		"a commit":        {change: func(r *fixture) error { r.write("a", "b\n"); r.commit("second"); return nil }, want: "update >a +-\n"},
		"only the index":  {change: func(r *fixture) error { r.git("rm", "-q", "--cached", "a"); return nil }},
		"another pattern": {change: func(r *fixture) error { r.write("x.o", "x"); r.write(".git/info/exclude", "*.o\n"); return nil }, want: "add >x.o +\n"},
		"other settings": {change: func(r *fixture) error {
			r.git("config", "core.fileMode", "false")
			return os.Chmod(in(r, "a"), 0o755)
		}, want: "update >a \n"},
		"a new file before":        {before: func(r *fixture) error { r.write("x", "x"); return nil }},
		"an edit before":           {before: func(r *fixture) error { r.write("a", "x"); return nil }},
		"modes that do not count":  {before: func(r *fixture) error { r.git("config", "core.FILEMODE", "false"); return nil }},
		"an assumed file":          {before: func(r *fixture) error { r.git("update-index", "--assume-unchanged", "a"); return nil }},
		"a file that is not there": {before: func(r *fixture) error { r.git("update-index", "--skip-worktree", "a"); return os.Remove(in(r, "a")) }},
		"an index of two parts":    {before: func(r *fixture) error { r.git("update-index", "--split-index"); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			r := rested(t)
			if tt.before != nil {
				if err := tt.before(r); err != nil {
					t.Fatal(err)
				}
			}
			scratch := t.TempDir()
			s, err := repo.TakeLater(t.Context(), r.dir, repo.Scratch{Dir: scratch})
			if err != nil {
				t.Fatal(err)
			}
			made := func() int {
				entries, err := os.ReadDir(scratch)
				if err != nil {
					t.Fatal(err)
				}
				return len(entries)
			}
			if got := made(); (got > 0) != (tt.before != nil) {
				t.Errorf("%d folders for git", got)
			}
			if tt.change != nil {
				if err := tt.change(r); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if got := changes(t, s); got != tt.want {
					t.Errorf("changes %q, want %q", got, tt.want)
				}
			}
			diff, left, err := s.Diff(t.Context(), 1<<20)
			if err != nil || len(left) > 0 || strings.Count(diff, "diff --git") != strings.Count(tt.want, "\n") {
				t.Errorf("%s, %v, %v", diff, left, err)
			}
			if err := s.Remove(); err != nil || made() > 0 {
				t.Errorf("%d folders are left, %v", made(), err)
			}
		})
	}
}
