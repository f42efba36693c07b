package repo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/google/go-cmp/cmp"
)

// rested returns repositories whose files changed before their indexes. The files of all are made
// first.
func rested(t *testing.T, n int) []*fixture {
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
	all := r.copies(t, n)
	for _, c := range all {
		c.git("update-index", "--refresh")
	}
	return all
}

// rest commits all files, so that the index is younger than they are.
func (r *fixture) rest(message string) {
	r.commit(message)
	r.git("read-tree", "HEAD")
	r.git("update-index", "--refresh")
}

// attributed commits attributes, and makes a new file.
func attributed(r *fixture, attributes string) error {
	r.write(".gitattributes", attributes)
	r.rest("attributes")
	r.write("new", "x")
	return nil
}

// TestStill takes snapshots of a repository in which nothing is new. They make no folder for git
// before something has changed, and find the same changes as others.
func TestStill(t *testing.T) {
	t.Parallel()
	in := func(r *fixture, name string) string { return filepath.Join(r.dir, name) }
	rows := map[string]struct {
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
			r.configure(setting{"core.fileMode", "false"})
			return os.Chmod(in(r, "a"), 0o755)
		}, want: "update >a \n"},
		"a special file before":  {before: func(r *fixture) error { return syscall.Mkfifo(in(r, "x"), 0o600) }},
		"a new link before":      {before: func(r *fixture) error { return os.Symlink("a", in(r, "x")) }},
		"an empty folder before": {before: func(r *fixture) error { return os.Mkdir(in(r, "x"), 0o755) }},
		"another repository":     {before: func(r *fixture) error { r.git("init", "-q", "x"); return nil }},
		"an encoding":            {before: func(r *fixture) error { return attributed(r, "none working-tree-encoding=UTF-16\n") }},
		"a filter":               {before: func(r *fixture) error { return attributed(r, "none filter=x\n") }},
		"many new files": {before: func(r *fixture) error {
			for i := range 101 {
				r.write(fmt.Sprint("x", i), "x")
			}
			return nil
		}},
		"a large new file":      {before: func(r *fixture) error { r.write("x", strings.Repeat("x", 1<<20+1)); return nil }},
		"patterns with a class": {before: func(r *fixture) error { r.write(".gitignore", "[a-z].o\n"); r.write("x.o", ""); return nil }},
		"a new folder with an ignored file": {before: func(r *fixture) error {
			r.write(".gitignore", "*.o\n")
			r.write("x/x.o", "")
			r.write("x/y", "")
			return nil
		}},
		"modes that do not count":  {before: func(r *fixture) error { r.configure(setting{"core.FILEMODE", "false"}); return nil }},
		"an assumed file":          {before: func(r *fixture) error { r.git("update-index", "--assume-unchanged", "a"); return nil }},
		"a file that is not there": {before: func(r *fixture) error { r.git("update-index", "--skip-worktree", "a"); return os.Remove(in(r, "a")) }},
		"an index of two parts":    {before: func(r *fixture) error { r.git("update-index", "--split-index"); return nil }},
	}
	copies := rested(t, len(rows))
	for name, tt := range rows {
		r := copies[0]
		copies = copies[1:]
		t.Run(name, func(t *testing.T) {
			r := r.in(t)
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
			if tt.before == nil { // git has not looked yet, as it has later
				if got := changes(t, s); got != tt.want {
					t.Errorf("changes %q, want %q", got, tt.want)
				}
			}
			got, diff, left, err := compare(t, s)
			if got != tt.want {
				t.Errorf("changes %q, want %q in the end", got, tt.want)
			}
			if err != nil || len(left) > 0 || strings.Count(diff, "diff --git") != strings.Count(tt.want, "\n") {
				t.Errorf("%s, %v, %v", diff, left, err)
			}
			if err := s.Remove(); err != nil || made() > 0 {
				t.Errorf("%d folders are left, %v", made(), err)
			}
		})
	}
}

// TestStillAsByGit takes two snapshots of a tree with changed, new and ignored files, one of them by
// git alone, and compares what they find after more has changed.
func TestStillAsByGit(t *testing.T) { stillAsByGit(t, 5) }

func stillAsByGit(t *testing.T, trees int) {
	names := []string{"a", "run", "c/d", "c/e", "n", "c/n", "f/n", "f/g/n", "f/x.o", "x.o", "c/x.o", "out/x", "out/y", "c/out/x", ".gitignore", "c/.gitignore", ".gitattributes", "c/ü \"x\""}
	texts := map[string][]string{
		".gitignore": {"*.o\n/out/\n", "*.o\n!/x.o\nout\n", "/c/**/*.o\n", "", "c\n"}, "c/.gitignore": {"out\n", "!x.o\n", "# nothing\n"},
		".gitattributes": {"* text\n", "*.o filter=x\n", "n eol=crlf\n"},
	}
	quiet := 0
	for seed, r := range rested(t, trees) {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		if seed%2 == 1 {
			r.write(".gitattributes", "* text\n")
			r.write(".gitignore", "*.o\n")
			r.rest("second")
		}
		alter := func(steps int) {
			for range steps {
				name := names[random.IntN(len(names))]
				switch k := random.IntN(10); {
				case k == 0 && name != ".gitattributes": // git itself would find changes of files that it converted
					_ = os.RemoveAll(filepath.Join(r.dir, name))
				case k == 1:
					_ = os.Chmod(filepath.Join(r.dir, name), 0o755) // it may not be there
				case k == 2 && name != ".gitattributes":
					_ = os.Rename(filepath.Join(r.dir, name), filepath.Join(r.dir, path.Dir(name), "moved"))
				case k == 3 && texts[name] == nil:
					r.write(name, strings.Repeat("\xff\x00 or many lines\n"[2*random.IntN(2):], 1+5_000*random.IntN(2)))
				case texts[name] != nil:
					r.write(name, texts[name][random.IntN(len(texts[name]))])
				default:
					r.write(name, strings.Repeat(fmt.Sprintf("line %d\r\n", random.IntN(3)), random.IntN(4)))
				}
			}
		}
		alter(1 + random.IntN(6))
		var found [2]string
		var taken [2]*repo.Snapshot
		scratch := [2]string{t.TempDir(), t.TempDir()}
		for i, take := range []func(context.Context, string, repo.Scratch) (*repo.Snapshot, error){repo.TakeByGit, repo.TakeLater} {
			var err error
			if taken[i], err = take(t.Context(), r.dir, repo.Scratch{Dir: scratch[i]}); err != nil {
				t.Fatal(err)
			}
		}
		if entries, err := os.ReadDir(scratch[1]); err == nil && len(entries) == 0 {
			quiet++
		}
		for _, steps := range []int{0, random.IntN(3), random.IntN(6)} {
			alter(steps)
			for i, s := range taken {
				var diff string
				var left []repo.Omission
				var err error
				found[i], diff, left, err = compare(t, s)
				found[i] += fmt.Sprintf("%s%v%v", diff, err, s.Gaps())
				for _, o := range left {
					found[i] += fmt.Sprintln(o.Path, o.Kind, o.Why)
				}
			}
			if d := cmp.Diff(found[0], found[1]); d != "" {
				t.Errorf("seed %d (-git +got):\n%s", seed, d)
			}
		}
		for _, s := range taken {
			if err := s.Remove(); err != nil {
				t.Error(err)
			}
		}
	}
	if quiet < trees/4 {
		t.Errorf("git was not needed in only %d of %d trees", quiet, trees)
	}
}

// TestPatternsAsTheyWere changes git's own patterns after the look. What git must look at later counts
// by those of before.
func TestPatternsAsTheyWere(t *testing.T) {
	r := newRepo(t)
	r.write("a", "a\n")
	r.commit("first")
	s, err := repo.TakeLater(t.Context(), r.dir, repo.Scratch{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r.write(".git/info/exclude", "/new\n")
	r.write("new", "new\n")
	if err := os.Symlink("a", filepath.Join(r.dir, "link")); err != nil { // at which git must look
		t.Fatal(err)
	}
	changes, err := s.Compare(t.Context())
	if err != nil || len(changes) != 2 || changes[0].Path != "link" || changes[1].Path != "new" {
		t.Errorf("changes %+v, %v", changes, err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
}
