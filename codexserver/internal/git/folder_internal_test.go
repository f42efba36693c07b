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
	written := time.Unix(1_700_000_000, 123456000)
	for _, tt := range []struct{ begin, want time.Time }{
		{written.Add(time.Minute), written},
		{written.Add(coarse), written},
		{written.Add(time.Second), written.Add(time.Second - coarse)},
	} {
		m, err := Scratch{Dir: t.TempDir()}.open(root)
		if err != nil {
			t.Fatal(err)
		}
		l := &look{mirror: m, before: content{begin: tt.begin}, index: index{data: "DIRC", written: written.UnixNano()}}
		if err := l.lay(t.Context()); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(m.scratch, "index"))
		if err != nil || !info.ModTime().Equal(tt.want) {
			t.Errorf("%v, %v; want %v", info.ModTime(), err, tt.want)
		}
		if err := m.remove(); err != nil {
			t.Error(err)
		}
	}
}
