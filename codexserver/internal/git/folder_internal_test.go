package git

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

// TestIndexTime checks the time of the copied index. Git compares it with the times of files to see
// which are unchanged, in seconds.
func TestIndexTime(t *testing.T) {
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
	s := Scratch{Dir: t.TempDir()}
	r, err := s.locate(root, false)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer m.remove()
	begin := time.Unix(1_700_000_100, 0)
	for _, tt := range []struct {
		begin, want time.Time
		recent      bool
	}{
		{begin, want, false},
		{want.Add(coarse), want, false},
		{want.Add(time.Second), want.Add(time.Second - coarse), true},
	} {
		if recent, err := m.copyIndex("copy", tt.begin); err != nil || recent != tt.recent {
			t.Fatalf("%v, %v", recent, err)
		}
		info, err := os.Stat(filepath.Join(m.scratch, "copy"))
		if err != nil || !info.ModTime().Equal(tt.want) {
			t.Errorf("%v, %v; want %v", info.ModTime(), err, tt.want)
		}
	}
}
