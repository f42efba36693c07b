package git_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// take takes a snapshot, which the test's end removes.
func take(t *testing.T, dir string) *git.Before {
	t.Helper()
	scratch := scratch(t)
	s, err := git.Look(t.Context(), dir, &git.Options{Scratch: scratch})
	must.OK(t, err)
	t.Cleanup(func() {
		if ran, _ := filepath.Glob(filepath.Join(scratch.Dir, "git-*", "git", "ran")); len(ran) > 0 {
			t.Error("a program of the repository ran in the sandbox")
		}
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(scratch.Dir); len(left) > 0 {
			t.Errorf("left: %v", left)
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

// TestLookWritesNothing checks that a look and a comparison write nothing to the repository and the folder.
func TestLookWritesNothing(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\ntwo\n")
	r.commit("first")
	r.write("a.txt", "one\n")
	r.write("u", "u\n")
	s := take(t, r.dir)
	r.write("u", "v\n")
	before := stamps(t, r.dir)
	if got, want := changes(t, s), "update >u +-\n"; got != want {
		t.Errorf("changes %q, want %q", got, want)
	}
	must.Equal(t, "the repository", before, stamps(t, r.dir))
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
	must.OK(t, err)
	return found
}

// TestCompareWithUserSettings checks that the user's filters do not run, and that the user's ignore patterns count.
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
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	}
	r.write(".gitattributes", "* filter=mine\n")
	s := take(t, r.dir)
	r.write("a", "a\n")
	r.write("x.tmp", "x\n")
	if got, want := changes(t, s), "add >a +\n"; got != want {
		t.Errorf("changes %q, want %q", got, want)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("a filter was run")
	}
}

// TestCompareIgnoresSnapshots checks that snapshots below the folder are not compared.
func TestCompareIgnoresSnapshots(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	var both []*git.Before
	for range 2 {
		s, err := git.Look(t.Context(), r.dir, &git.Options{Scratch: git.Scratch{Dir: filepath.Join(r.dir, "tmp")}})
		must.OK(t, err)
		defer s.Remove()
		both = append(both, s)
	}
	r.write("u", "u\n")
	for _, s := range both {
		if got, want := changes(t, s), "add >u +\n"; got != want {
			t.Errorf("changes %q, want %q", got, want)
		}
	}
}

// TestCovers checks that a snapshot covers its folder, and no other repositories in it.
func TestCovers(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	r.shell("git init -q nested; mkdir -p nested/sub plain/.git")
	plain := t.TempDir()
	if err := os.Mkdir(filepath.Join(plain, ".git"), 0o755); err != nil { // as sandboxes do
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dir, root string
		covers    map[string]bool
	}{
		{r.dir, r.dir, map[string]bool{"a.txt": true, "new/x": true, "plain/x": true, "nested": false, "nested/sub/x": false, "nestedx": true, "../x": false}},
		{filepath.Join(r.dir, "nested", "sub"), filepath.Join(r.dir, "nested"), map[string]bool{"sub/x": true, "x": true, "../a.txt": false}},
		{plain, plain, map[string]bool{"sub/x": true, "../x": false}},
	} {
		s := take(t, tt.dir)
		if s.Root() != tt.root {
			t.Errorf("the root of %s is %s", tt.dir, s.Root())
		}
		for name, want := range tt.covers {
			if got := s.Covers(filepath.Join(tt.root, name)); got != want {
				t.Errorf("%s covers %s: %t", tt.dir, name, got)
			}
		}
	}
}
