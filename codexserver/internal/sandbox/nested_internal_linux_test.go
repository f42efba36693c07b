package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestNestedRepositories searches folders with every kind of repository.
func TestNestedRepositories(t *testing.T) {
	top := t.TempDir()
	path := func(name string) string { return filepath.Join(top, name) }
	for _, dir := range []string{
		"work/.git/modules/sub/.git", "work/a/b/c/.git", "work/capitals/.GIT", "work/bare/objects", "work/bare/refs",
		"work/half/refs", "work/skipped/.git", "work/target", "elsewhere/.git", "work/inner/.git",
		"work/named/.git/modules", "work/mirror/objects", "work/mirror/refs",
	} {
		if err := os.MkdirAll(path(dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for file, content := range map[string]string{
		"work/bare/HEAD": "ref: refs/heads/main\n", "work/mirror/HEAD": "", "work/half/HEAD": "", "work/module/.git": "gitdir: ../target\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path(file)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path(file), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"work/linked": "../elsewhere", "work/loop": ".", "work/target/.git": "../../elsewhere/.git"} {
		if err := os.Symlink(to, path(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(path("work/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	plenty := bounds{1000, 100, 10000, time.Minute}
	roots := []string{path("work/inner"), path("work"), path("gone"), path("work/named/.git"), path("work/mirror")}
	got, err := nestedRepositories(roots, []string{path("work/.git"), path("work/skipped")}, plenty)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		path("elsewhere/.git"), path("work/.git"), path("work/a/b/c/.git"), path("work/bare"), path("work/capitals/.GIT"),
		path("work/inner/.git"), path("work/module/.git"), path("work/target"), path("work/target/.git"),
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNestedRepositoriesBounded checks that a search that cannot be complete fails.
func TestNestedRepositoriesBounded(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(top string) error
		b    bounds
		want string // "" if the search is complete
	}{
		{"all", manyRepositories, bounds{8, 4, 10000, time.Minute}, ""},
		{"too many files", manyRepositories, bounds{7, 4, 10000, time.Minute}, "too many files"},
		{"too many repositories", manyRepositories, bounds{8, 3, 10000, time.Minute}, "too many git repositories"},
		{"too long paths", manyRepositories, bounds{8, 4, 50, time.Minute}, "too long"},
		{"too slow", manyRepositories, bounds{8, 4, 10000, -1}, "too many files"},
		{"a name that is not UTF-8", func(top string) error { return os.MkdirAll(top+"/\xff/.git", 0o777) }, bounds{8, 4, 10000, time.Minute}, "not valid UTF-8"},
		{"another name that is not UTF-8", func(top string) error { return os.MkdirAll(top+"/\xff/git", 0o777) }, bounds{8, 4, 10000, time.Minute}, ""},
		{"a path that is too long to open", deepFolder, bounds{1000, 4, 100000, time.Minute}, "file name too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := t.TempDir()
			if err := tt.make(top); err != nil {
				t.Fatal(err)
			}
			if _, err := nestedRepositories([]string{top}, nil, tt.b); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// manyRepositories makes 4 repositories, and 8 folders in all.
func manyRepositories(top string) error {
	for i := range 4 {
		if err := os.MkdirAll(fmt.Sprintf("%s/%d/.git", top, i), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// deepFolder makes a folder that only a process in it can name.
func deepFolder(top string) error {
	name := strings.Repeat("d", 250)
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	for range 20 {
		if err := root.Mkdir(name, 0o777); err != nil {
			return err
		}
		next, err := root.OpenRoot(name)
		if err != nil {
			return err
		}
		root.Close()
		root = next
	}
	return root.Close()
}
