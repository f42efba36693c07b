package repo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// MakeRepo makes an empty repository: the least that git and this package take for one.
func MakeRepo(t testing.TB, dir string) {
	t.Helper()
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n", "refs/heads/": "", "objects/info/": "", "objects/pack/": ""} {
		path := filepath.Join(dir, ".git", filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestMirrorKeepsTheIndexTime checks the time of the copied index. Git compares it with
// the times of files to see which are unchanged.
func TestMirrorKeepsTheIndexTime(t *testing.T) {
	root := t.TempDir()
	MakeRepo(t, root)
	index := filepath.Join(root, ".git", "index")
	if err := os.WriteFile(index, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := time.Unix(1_700_000_000, 123456000)
	if err := os.Chtimes(index, want, want); err != nil {
		t.Fatal(err)
	}
	m, err := Scratch{Dir: t.TempDir()}.mirror(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer m.remove()
	if err := copyIndex(m.dir, m.gitDir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(m.dir, "index"))
	if err != nil || !info.ModTime().Equal(want) {
		t.Errorf("%v, %v; want %v", info.ModTime(), err, want)
	}
}

// TestLargeRefs has repositories whose refs would fill the disk.
func TestLargeRefs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		size map[string]int64 // of files in the git folder
		want string           // in the error
	}{
		{"small", map[string]int64{"refs/heads/a/b": 100, "packed-refs": 1 << 20, "reftable/one": 1 << 20}, ""},
		{"a loose ref", map[string]int64{"refs/heads/a/b": maxLooseRef + 1}, "more than 8192 bytes"},
		{"HEAD", map[string]int64{"HEAD": maxLooseRef + 1}, "more than 8192 bytes"},
		{"packed refs", map[string]int64{"packed-refs": maxRefsSize + 1}, "the refs of the repository have more than 67108864 bytes"},
		{"tables", map[string]int64{"reftable/one": maxRefsSize - 10, "reftable/two": 20}, "the refs of the repository have more than 67108864 bytes"},
		{"all together", map[string]int64{"packed-refs": maxRefsSize - 10, "refs/heads/a": 20}, "the refs of the repository have more than 67108864 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, scratch := t.TempDir(), t.TempDir()
			MakeRepo(t, root)
			for name, size := range tt.size {
				path := filepath.Join(root, ".git", filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(path, size); err != nil {
					t.Fatal(err)
				}
			}
			m, err := Scratch{Dir: scratch}.mirror(t.Context(), root, "refs/heads")
			if err == nil {
				err = m.remove()
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
				t.Errorf("the scratch folder has %v, %v", left, err)
			}
		})
	}
}

// TestManyFoldersOfRefs has more folders than may be copied.
func TestManyFoldersOfRefs(t *testing.T) {
	from := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.MkdirAll(filepath.Join(from, "refs", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, entries := range []int{3, 4} {
		err := (&private{}).copyTree(t.Context(), t.TempDir(), from, "refs", maxLooseRef, &allowance{entries, maxRefsSize})
		if (err == nil) != (entries == 4) {
			t.Errorf("%d entries: %v", entries, err)
		}
	}
}
