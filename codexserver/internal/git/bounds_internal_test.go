//go:build unix

package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
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

// TestSplit chooses the files of a snapshot that git reads.
func TestSplit(t *testing.T) {
	dir := t.TempDir()
	layHoles(t, dir, map[string]int64{"a": 16 << 20, "b": 16 << 20, "c": 16 << 20, "d": 16<<20 - 1, "one": 1, "two": 2, "large": 16<<20 + 1, "folder/x": 1})
	must.OK(t, os.Symlink("folder", filepath.Join(dir, "link")))
	own := []string{"a", "b", "c", "d", "one"}
	for name, tt := range map[string]struct {
		files          int
		repository     bool
		names, present []string
		err            error
	}{
		"as many bytes as may be": {5, false, own, own, nil},
		"a byte more":             {5, false, []string{"a", "b", "c", "d", "two"}, nil, errLarge},
		"in a repository":         {5, true, []string{"a", "b", "c", "d", "two"}, []string{"a", "b", "c", "d", "two"}, nil},
		"a file more":             {4, false, own, nil, errLarge},
		"a large one":             {5, false, []string{"large", "one"}, []string{"one"}, nil},
		"behind a link, and gone": {5, false, []string{"link/x", "link", "folder", "none"}, []string{"link"}, nil},
	} {
		l := &look{mirror: &mirror{root: dir}, files: tt.files}
		if tt.repository {
			l.gitDir = dir
		}
		r := content{seen: map[string]stat{}, others: map[string]other{}}
		for _, name := range tt.names {
			r.seen[name] = l.now(name)
		}
		present, err := l.split(&r, func(string) bool { return true })
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(tt.present, present); d != "" && err == nil {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if _, marked := r.others["large"]; marked != slices.Contains(tt.names, "large") {
			t.Errorf("%s: the large file is marked: %t", name, marked)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&mirror{root: dir}).walk(ended, "", nil); !errors.Is(err, context.Canceled) {
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

// TestWriteTo restores a link and a file below its name, as a look reads them while a folder becomes a link.
func TestWriteTo(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	kept := must.Get(os.Create(filepath.Join(dir, "kept")))(t)
	defer kept.Close()
	must.Get(kept.WriteString(outside + "planted"))(t)
	at := int64(len(outside))
	l := &look{mirror: &mirror{contents: kept}, kept: map[string]span{"a": {0, at}, "a/x": {at, 7}, "b/c": {at, 7}}}
	l.before.seen = map[string]stat{"a": {mode: modeLink}, "a/x": {mode: modeFile}, "b/c": {mode: modeFile | 0o111}}
	must.OK(t, l.writeTo(filepath.Join(dir, "good"), []string{"a", "b/c"}))
	must.Equal(t, "the file", "planted", string(must.Get(os.ReadFile(filepath.Join(dir, "good/b/c")))(t)))
	if err := l.writeTo(filepath.Join(dir, "bad"), []string{"a", "a/x"}); err == nil {
		t.Error("a file was written behind a link")
	}
	if left := must.Get(os.ReadDir(outside))(t); len(left) > 0 {
		t.Errorf("%s is outside", left[0].Name())
	}
}
