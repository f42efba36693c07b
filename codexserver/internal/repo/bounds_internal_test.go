//go:build unix

package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// layHoles makes files of sizes, which take no room.
func layHoles(t *testing.T, dir string, sizes map[string]int64) {
	t.Helper()
	for name, size := range sizes {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSorted chooses the files of a snapshot that git reads.
func TestSorted(t *testing.T) {
	dir := t.TempDir()
	layHoles(t, dir, map[string]int64{"a": 16 << 20, "b": 16 << 20, "c": 16 << 20, "d": 16<<20 - 1, "one": 1, "two": 2, "large": 16<<20 + 1, "folder/x": 1})
	if err := os.Symlink("folder", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	own := []string{"a", "b", "c", "d", "one"}
	for name, tt := range map[string]struct {
		ctx           context.Context
		files         int
		repository    bool
		names         []string
		present, gone []string
		err           error
	}{
		"as many bytes as may be":  {t.Context(), 5, false, own, own, nil, nil},
		"a byte more":              {t.Context(), 5, false, []string{"a", "b", "c", "d", "two"}, nil, nil, ErrLarge},
		"in a repository":          {t.Context(), 5, true, []string{"a", "b", "c", "d", "two"}, []string{"a", "b", "c", "d", "two"}, nil, nil},
		"a file more":              {t.Context(), 4, false, own, nil, nil, ErrLarge},
		"a large one":              {t.Context(), 5, false, []string{"large", "one"}, []string{"one"}, nil, nil},
		"behind a link, and gone":  {t.Context(), 5, false, []string{"link/x", "link", "folder", "none"}, []string{"link", "none"}, []string{"link/x", "folder"}, nil},
		"when the turn has ended":  {ended, 5, false, own, nil, nil, context.Canceled},
		"a submodule with content": {t.Context(), 5, false, []string{"folder"}, []string{"folder"}, nil, nil},
	} {
		s := &Snapshot{root: dir, own: !tt.repository, files: tt.files}
		r := content{marks: map[string]mark{}, modules: map[string]bool{}}
		if strings.Contains(name, "submodule") {
			r.modules["folder"] = true
		}
		present, gone, err := s.sort(tt.ctx, tt.names, &r)
		if d := cmp.Diff([][]string{tt.present, tt.gone}, [][]string{present, gone}); d != "" || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
		if _, marked := r.marks["large"]; marked != slices.Contains(tt.names, "large") {
			t.Errorf("%s: the large file is marked: %t", name, marked)
		}
	}
	s := &Snapshot{root: dir, files: 1, begin: time.Now()}
	if err := s.uncover(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	x := index{{name: "a", mode: 0o100644}, {name: "b", mode: 0o100644}}
	if err := s.uncover(t.Context(), x, []string{"a", "b"}); !errors.Is(err, ErrLarge) {
		t.Errorf("more files are checked out than may be read: %v", err)
	}
	var found oddities
	for what, err := range map[string]error{"tour": s.tour(ended, "", nil, &news{}, &found), "walk": s.walk(ended, "", nil, &found)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestBoundedLists has lists with one element more than they may have, or name.
func TestBoundedLists(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "git ignores f0", 3: "git ignores f0, f1, f2", 4: "git ignores f0, f1, f2 and 1 more"} {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("f", i), fmt.Sprint("f", i))
		}
		if got := ignoredWhy(names); got != want {
			t.Errorf("%d ignored files: %q", n, got)
		}
	}
	for parts, want := range map[int]string{15: "it does not exist", 16: "too many repositories and folders"} {
		v := &Survey{parts: make([]part, parts)}
		none := filepath.Join(t.TempDir(), "none")
		v.add(t.Context(), "", none, false, true, &SurveyOptions{Scratch: Scratch{Dir: t.TempDir()}})
		if d := cmp.Diff([]Gap{{none + "/", want}}, v.gaps); d != "" {
			t.Errorf("%d parts (-want +got):\n%s", parts, d)
		}
	}
	for size, cut := range map[int]bool{16<<20 - 1: false, 16 << 20: true} {
		var c Changes
		if c.add(strings.Repeat("x", size)); c.Cut != cut {
			t.Errorf("%d bytes of a diff are cut: %t", size, c.Cut)
		}
	}
}
