package git_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/google/go-cmp/cmp"
)

// take takes a snapshot, which the test's end removes.
func take(t *testing.T, dir string) *git.Before {
	t.Helper()
	scratch := filepath.Join(t.TempDir(), "scratch")
	s, err := git.Look(t.Context(), dir, &git.Options{Scratch: git.Scratch{Dir: scratch}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	return s
}

// changes returns the changes since a snapshot, one in each line.
func changes(t *testing.T, s *git.Before) string {
	t.Helper()
	list, diff, err := s.Compare(t.Context(), 1<<20)
	if err != nil || diff != "" && len(list) == 0 {
		t.Fatalf("%v\n%.1000s", err, diff)
	}
	var b strings.Builder
	for _, c := range list {
		b.WriteString(string(c.Kind) + " " + c.From + ">" + c.Path)
		if c.Lines != nil {
			b.WriteString(" " + strings.Repeat("+", c.Lines.Added) + strings.Repeat("-", c.Lines.Removed))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestCompare compares pairs of states of a tree. The first rows share a repository, in which each has
// a folder.
func TestCompare(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x\n", 9<<20)
	type row struct {
		name        string
		lay, change func(r *fixture)
		want        string
	}
	shared := []row{
		{"tracked", nil, func(r *fixture) { r.write("a.txt", "one\n2\n3\n") }, "update >a.txt ++-\n"},
		{"untracked", nil, func(r *fixture) { r.write("new/x y", "x\n"); r.write("bin", "\x00") }, "add >bin\nadd >new/x y +\n"},
		{"deleted", func(r *fixture) { r.write("u", "u\n") }, func(r *fixture) { r.remove("a.txt"); r.remove("u") }, "delete >a.txt --\ndelete >u -\n"},
		{"dirty before, changed", func(r *fixture) { r.write("a.txt", "dirty\n") }, func(r *fixture) { r.write("a.txt", "dirty\nmore\n") }, "update >a.txt +\n"},
		{"dirty before, the same size", func(r *fixture) { r.write("a.txt", "dirty\n") }, func(r *fixture) { r.write("a.txt", "dirtx\n") }, "update >a.txt +-\n"},
		{"dirty before, clean again", func(r *fixture) { r.write("a.txt", "dirty\n") }, func(r *fixture) { r.write("a.txt", "one\ntwo\n") }, "update >a.txt ++-\n"},
		{"renamed", func(r *fixture) { r.write("long", strings.Repeat("line\n", 9)) }, func(r *fixture) {
			r.remove("long")
			r.write("moved", strings.Repeat("line\n", 9)+"x\n")
		}, "rename long>moved +\n"},
		{"the mode", nil, func(r *fixture) { r.chmod("a.txt", 0o755) }, "update >a.txt \n"},
		{"a file that becomes a folder", nil, func(r *fixture) { r.remove("a.txt"); r.write("a.txt/b", "b\n") }, "delete >a.txt --\nadd >a.txt/b +\n"},
		{"large files", func(r *fixture) {
			r.write("same", large)
			r.write("changed", large)
			r.write("gone", large)
			r.write("shrunk", large)
		}, func(r *fixture) {
			r.write("changed", large+"x")
			r.remove("gone")
			r.write("shrunk", "x")
			r.write("new", large)
			r.write("a.txt", large)
		}, "update >a.txt\nupdate >changed\ndelete >gone\nadd >new\nupdate >shrunk\n"},
		{"a filter", func(r *fixture) {
			r.write(".gitattributes", "*.bin filter=lfs\n")
		}, func(r *fixture) { r.write("x.bin", "text\n"); r.write("y", "y\n") }, "add >x.bin\nadd >y +\n"},
		{"another repository", func(r *fixture) { r.git("init", "-q", "old") }, func(r *fixture) {
			r.git("init", "-q", "nested")
			r.write("nested/x", "x")
			r.removeAll("old")
		}, "add >nested/\ndelete >old/\n"},
		{"the repository itself", nil, func(r *fixture) { r.git("init", "-q", "elsewhere"); r.removeAll("elsewhere"); r.write("n", "n\n") }, "add >n +\n"},
		{"names", nil, func(r *fixture) { r.write("a\tb\nc", "x\n"); r.write("-x", "x\n"); r.write(":(top)y", "y\n") }, "add >-x +\nadd >:(top)y +\nadd >a\tb\nc +\n"},
	}
	alone := []row{
		{"nothing", func(r *fixture) { r.write("dirty", "x") }, func(*fixture) {}, ""},
		{"a file touched", nil, func(r *fixture) { r.write("a.txt", "one\ntwo\n") }, ""},
		{"deleted before, there again", func(r *fixture) { r.remove("a.txt") }, func(r *fixture) { r.write("a.txt", "one\n") }, "add >a.txt +\n"},
		{"staged and committed", func(r *fixture) { r.write("u", "u\n") }, func(r *fixture) { r.write("u", "u\nv\n"); r.commit("u") }, "update >u +\n"},
		{"another branch", func(r *fixture) {
			r.git("checkout", "-q", "-b", "other")
			r.write("b", "b\n")
			r.commit("b")
			r.git("checkout", "-q", "main")
		}, func(r *fixture) { r.git("checkout", "-q", "other") }, "add >b +\n"},
		{"ignored", func(r *fixture) { r.write(".gitignore", "out\n") }, func(r *fixture) { r.write("out", "x") }, ""},
		{"hidden by info/exclude in between", nil, func(r *fixture) { r.write(".git/info/exclude", "u\n"); r.write("u", "u\n") }, "add >u +\n"},
		{"hidden by flags of the index", func(r *fixture) {
			r.write("b.txt", "b\n")
			r.commit("b")
			r.git("update-index", "--assume-unchanged", "a.txt")
			r.git("update-index", "--skip-worktree", "b.txt")
		}, func(r *fixture) { r.write("a.txt", "x\n"); r.write("b.txt", "x\n") }, "update >a.txt +--\nupdate >b.txt +-\n"},
		{"a folder that becomes a file", func(r *fixture) { r.write("d/x", "x\n") }, func(r *fixture) { r.remove("d/x"); r.remove("d"); r.write("d", "y\nz\n") }, "add >d ++\ndelete >d/x -\n"},
		{"a folder that becomes a link", func(r *fixture) { r.write("d/x", "x\n"); r.write("d/e/y", "y\n"); r.commit("d") }, func(r *fixture) {
			if err := errors.Join(os.Rename(filepath.Join(r.dir, "d"), filepath.Join(r.dir, "../moved")), os.Symlink("../moved", filepath.Join(r.dir, "d"))); err != nil {
				r.t.Fatal(err)
			}
		}, "add >d +\ndelete >d/e/y -\ndelete >d/x -\n"},
		{"a conflict", func(r *fixture) {
			r.git("checkout", "-q", "-b", "other")
			r.write("a.txt", "other\n")
			r.commit("other")
			r.git("checkout", "-q", "main")
			r.write("a.txt", "main\n")
			r.commit("main")
			if out, err := r.try("merge", "other"); err == nil {
				r.t.Fatalf("the merge has no conflict: %s", out)
			}
		}, func(r *fixture) { r.write("a.txt", "both\n") }, "update >a.txt +-----\n"},
	}
	r := newRepo(t)
	r.write("a.txt", "one\ntwo\n")
	r.commit("first")
	copies := r.copies(t, len(alone)+1)
	check := func(t *testing.T, lay, change func(), dir, want string) {
		t.Helper()
		lay()
		before := stamps(t, dir)
		s := take(t, dir)
		same(t, "the repository", before, stamps(t, dir))
		change()
		if d := cmp.Diff(want, changes(t, s)); d != "" {
			t.Error("(-want +got)\n" + d)
		}
	}
	for i, tt := range alone {
		t.Run(tt.name, func(t *testing.T) {
			r := copies[i].in(t)
			check(t, func() {
				if tt.lay != nil {
					tt.lay(r)
				}
			}, func() { tt.change(r) }, r.dir, tt.want)
		})
	}
	t.Run("shared", func(t *testing.T) {
		r := copies[len(alone)].in(t)
		folder := func(i int) string { return string(rune('a' + i)) }
		in := func(i int) *fixture { return &fixture{t, filepath.Join(r.dir, folder(i))} }
		var want strings.Builder
		for i, tt := range shared {
			in(i).write("a.txt", "one\ntwo\n")
			want.WriteString(strings.NewReplacer(">", ">"+folder(i)+"/", "rename ", "rename "+folder(i)+"/").Replace(tt.want))
		}
		r.commit("all")
		check(t, func() {
			for i, tt := range shared {
				if tt.lay != nil {
					tt.lay(in(i))
				}
			}
		}, func() {
			for i, tt := range shared {
				tt.change(in(i))
			}
		}, r.dir, want.String())
	})
}

// stamps returns what shows that a file in a folder was written, without its content.
func stamps(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		found[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
		if strings.HasPrefix(path, filepath.Join(dir, ".git", "objects")) { // git renews the time of one that it would write again
			found[path] = fmt.Sprint(info.Mode(), info.Size())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (r *fixture) remove(name string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *fixture) removeAll(name string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *fixture) chmod(name string, mode os.FileMode) {
	r.t.Helper()
	if err := os.Chmod(filepath.Join(r.dir, name), mode); err != nil {
		r.t.Fatal(err)
	}
}

// TestCompareWithUserSettings checks that the user's filters do not run, and that the
// user's ignore patterns count.
func TestCompareWithUserSettings(t *testing.T) {
	r := newRepo(t)
	trap, home := filepath.Join(r.dir, "../ran"), t.TempDir()
	ignored := filepath.Join(home, "ignored")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "0")
	t.Setenv("GIT_CONFIG_SYSTEM", filepath.Join(home, "config"))
	for file, text := range map[string]string{
		ignored:                        "*.tmp\n",
		os.Getenv("GIT_CONFIG_SYSTEM"): "[core]\n\texcludesFile = " + ignored + "\n[filter \"mine\"]\n\tclean = touch '" + trap + "'; false\n\trequired = true\n", // in a sandbox it cannot touch
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.write(".gitattributes", "* filter=mine\n")
	s := take(t, r.dir)
	r.write("a", "a\n")
	r.write("x.tmp", "x\n")
	if got, want := changes(t, s), "add >a\n"; got != want {
		t.Errorf("changes %q, want %q", got, want)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("a filter was run")
	}
}

// TestCompareWithoutRepository takes a snapshot of a small folder without a repository.
func TestCompareWithoutRepository(t *testing.T) {
	r := &fixture{t, t.TempDir()}
	r.write("a", "a\n")
	r.write("sub/b", "b\n")
	if err := os.Mkdir(filepath.Join(r.dir, ".git"), 0o755); err != nil { // as sandboxes do
		t.Fatal(err)
	}
	s := take(t, r.dir)
	if s.Root() != r.dir || !s.Covers(filepath.Join(r.dir, "sub/b")) || s.Covers(filepath.Dir(r.dir)) {
		t.Errorf("the snapshot of %s has the root %s", r.dir, s.Root())
	}
	r.write("a", "a\nb\n")
	r.removeAll("sub")
	r.git("init", "-q") // which does not make it another folder
	if d := cmp.Diff("update >a +\ndelete >sub/b -\n", changes(t, s)); d != "" {
		t.Error("(-want +got)\n" + d)
	}

	many := &fixture{t, t.TempDir()}
	for i := range 6 {
		many.write(strconv.Itoa(i), "")
	}
	if v, err := git.Look(t.Context(), many.dir, &git.Options{Scratch: git.Scratch{Dir: t.TempDir()}, Files: 100}); !errors.Is(err, git.ErrLarge) {
		t.Errorf("of many files: %v, %v", v, err)
	}
}

// TestCompareIgnoresSnapshots checks that snapshots below the folder are not compared.
func TestCompareIgnoresSnapshots(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	scratch := filepath.Join(r.dir, "tmp")
	first, err := git.Look(t.Context(), r.dir, &git.Options{Scratch: git.Scratch{Dir: scratch}})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Remove()
	second, err := git.Look(t.Context(), r.dir, &git.Options{Scratch: git.Scratch{Dir: scratch}})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Remove()
	r.write("u", "u\n")
	for _, s := range []*git.Before{second, first} {
		if got, want := changes(t, s), "add >u +\n"; got != want {
			t.Errorf("changes %q, want %q", got, want)
		}
	}
}

// TestCovers checks that a snapshot does not cover other repositories in the folder.
func TestCovers(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	r.git("init", "-q", "nested")
	r.write("nested/sub/x", "x")
	s := take(t, r.dir)
	for name, want := range map[string]bool{"a.txt": true, "new/x": true, "nested": false, "nested/sub/x": false, "nestedx": true, "../x": false} {
		if got := s.Covers(filepath.Join(r.dir, name)); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	own := take(t, filepath.Join(r.dir, "nested", "sub"))
	if own.Root() != filepath.Join(r.dir, "nested") {
		t.Errorf("root %s", own.Root())
	}
}
