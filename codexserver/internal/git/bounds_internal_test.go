//go:build unix

package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// layHoles makes files of sizes, which take no room.
func layHoles(t *testing.T, dir string, sizes map[string]int64) {
	t.Helper()
	for name, size := range sizes {
		path := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600), os.Truncate(path, size))
	}
}

// TestLimits looks at folders with as many files and bytes as a look may read, and with one more.
func TestLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		files      int
		repository bool
		more       map[string]int64
		large      bool
		err        error
	}{
		"as many bytes as may be": {100, false, map[string]int64{"e": 1}, false, nil},
		"a byte more":             {100, false, map[string]int64{"e": 2}, false, errLarge},
		"in a repository":         {5, true, map[string]int64{"e": 2}, false, nil},
		"a file more":             {80, false, map[string]int64{"e": 1}, false, errLarge},
		"a large one":             {100, false, map[string]int64{"large": 16<<20 + 1}, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			layHoles(t, dir, map[string]int64{"a": 16 << 20, "b": 16 << 20, "c": 16 << 20, "d": 16<<20 - 1})
			layHoles(t, dir, tt.more)
			if tt.repository {
				must.Get(exec.CommandContext(t.Context(), "git", "init", "-q", dir).Output())(t)
			}
			s, err := Look(t.Context(), dir, &Options{Scratch: Scratch{Dir: t.TempDir(), Programs: &box.Programs{Temporary: []string{}}}, Files: tt.files})
			if !errors.Is(err, tt.err) {
				t.Fatal(err)
			}
			if err == nil {
				_, marked := s.parts[0].before.others["large"]
				must.Equal(t, "the large file is marked", tt.large, marked)
				must.OK(t, s.Remove())
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&mirror{root: t.TempDir()}).walk(ended, "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestBoundedLists has lists with one element more than they may have, or name.
func TestBoundedLists(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "git ignores f0", 3: "git ignores f0, f1, f2", 4: "git ignores f0, f1, f2 and 1 more"} {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("f", i), fmt.Sprint("f", i))
		}
		must.Equal(t, fmt.Sprint(n, " ignored files"), want, ignoredWhy(names))
	}
	for parts, want := range map[int]string{16: "it does not exist", 17: "too many folders"} {
		v := &Before{make([]*look, parts)}
		none := filepath.Join(t.TempDir(), "none")
		v.add(t.Context(), none, none, &Options{Scratch: Scratch{Dir: t.TempDir()}})
		if l := v.parts[parts]; l.at != none+"/" || l.gone != want {
			t.Errorf("%d parts: %+v", parts, l)
		}
	}
}

// TestLimit has git wait for a file.
func TestLimit(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	must.OK(t, unix.Mkfifo(pipe, 0o600))
	p := must.Get(Scratch{}.find(dir))(t)
	c := call{dir: dir, confined: must.Get(p.programs.Confine(dir))(t), limit: 50 * time.Millisecond}
	_, err := p.run(t.Context(), c, "config", "--list", "--file", pipe)
	must.Fail(t, "git", "git config takes longer than 50ms", err)
}

// TestPut writes a link and a file below its name, as a look reads them while a folder becomes a link.
func TestPut(t *testing.T) {
	outside := t.TempDir()
	folder := must.Get(openFolder(t.TempDir()))(t)
	defer folder.close()
	must.OK(t, folder.put("a", stat{mode: modeLink}, []byte(outside)), folder.put("b/c", stat{mode: modeFile | 0o111}, []byte("planted")))
	must.Equal(t, "the file", "planted", string(must.Get(folder.read("b/c", stat{mode: modeFile}))(t)))
	if err := folder.put("a/x", stat{mode: modeFile}, []byte("planted")); err == nil {
		t.Error("a file was written behind a link")
	}
	if left := must.Get(os.ReadDir(outside))(t); len(left) > 0 {
		t.Errorf("%s is outside", left[0].Name())
	}
}

// TestRead reads a file in a folder that has become a link that leads out.
func TestRead(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(outside, "x"), []byte("private"), 0o600), os.Symlink(outside, filepath.Join(dir, "a")))
	from := must.Get(openFolder(dir))(t)
	defer from.close()
	if data, err := from.read("a/x", stat{mode: modeFile}); err == nil {
		t.Errorf("read %q", data)
	}
}
