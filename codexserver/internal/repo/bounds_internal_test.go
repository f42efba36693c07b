//go:build unix

package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// TestSelection chooses the files of a worktree that are read.
func TestSelection(t *testing.T) {
	dir := t.TempDir()
	layHoles(t, dir, map[string]int64{"small": 3, "most": 64 << 20, "more": 64<<20 + 1, "folder/x": 1})
	if err := errors.Join(os.Symlink("small", filepath.Join(dir, "link")), os.Mkdir(filepath.Join(dir, "empty"), 0o700)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := &selection{root: root}
	for _, name := range []string{"small", "most", "more", "link", "nested/", ".GIT/x", "folder", "none"} {
		if err := s.add(name, name != "folder"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	skipped := []Skip{{"more", "it has more than 64 MiB", 64<<20 + 1}, {"nested", "it is a repository of its own", 0}, {".GIT/x", "git reserves this name", 0}}
	if d := cmp.Diff([]any{[]string{"small", "most", "link"}, []string{"none"}, skipped}, []any{s.files, s.gone, s.skipped}); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, tt := range []struct {
		files int
		all   int64
		name  string
		want  string
	}{
		{50_000 - 1, 0, "small", ""},
		{50_000, 0, "small", "more than 50000 files have changed"},
		{0, 1<<30 - 3, "small", ""},
		{0, 1<<30 - 2, "small", "the changed files together have more than 1024 MiB"},
	} {
		s := &selection{root: root, files: make([]string, tt.files), all: tt.all}
		if err := s.add(tt.name, true); tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %v", tt, err)
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
	var conflicts ConflictError
	for range 1001 {
		conflicts.add("a", "x")
	}
	if len(conflicts.Conflicts) != 1000 || conflicts.More != 1 || !strings.HasPrefix(conflicts.Error(), "worktree: 1001 files") {
		t.Errorf("%d conflicts and %d", len(conflicts.Conflicts), conflicts.More)
	}
	for size, cut := range map[int]bool{16<<20 - 1: false, 16 << 20: true} {
		var c Changes
		if c.add(strings.Repeat("x", size)); c.Cut != cut {
			t.Errorf("%d bytes of a diff are cut: %t", size, c.Cut)
		}
	}
}

// TestRecordBounds has records with members of the greatest length, and one longer each.
func TestRecordBounds(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := Store{Trees: filepath.Join(dir, "trees"), Records: filepath.Join(dir, "records")}
	const id = "0123456789abcdef"
	hash := strings.Repeat("a", 40)
	fresh := func() record {
		return record{
			Version: 1, ID: id, Phase: phaseUse, ThreadID: strings.Repeat("t", 200), Root: "/r", GitDir: "/r/.git", CommonDir: "/r/.git", Folder: ".",
			Path: filepath.Join(s.Trees, id, "r"), Base: hash, Start: hash, Saved: slices.Repeat([]string{hash}, 20), Branched: hash, Applying: strings.Repeat("x", 2000),
		}
	}
	for want, change := range map[string]func(*record){
		"":         func(*record) {},
		"threadId": func(r *record) { r.ThreadID += "t" },
		"saved":    func(r *record) { r.Saved = append(r.Saved, hash) },
		"applying": func(r *record) { r.Applying += "x" },
		"base, start, saved or branched is not the name of a git object": func(r *record) { r.Branched = strings.Repeat("a", 64) },
		"commonDir": func(r *record) { r.GitDir = "/r/.git/modules/x" },
		"path":      func(r *record) { r.Path = filepath.Join(s.Trees, id) },
		"root":      func(r *record) { r.Root = "/" },
	} {
		r := fresh()
		if change(&r); s.wrong(&r, id) != want {
			t.Errorf("%q is wrong, want %q", s.wrong(&r, id), want)
		}
	}
	r := fresh()
	if err := errors.Join(os.MkdirAll(s.recordFolder(id), 0o700), s.save(&r)); err != nil {
		t.Fatal(err)
	}
	w := &Worktree{store: s, record: r}
	last := strings.Repeat("b", 40)
	if err := w.update(func(r *record) { r.Saved = append(r.Saved, last) }); err != nil || len(w.record.Saved) != 20 || w.record.Saved[19] != last {
		t.Errorf("%d trees are saved, %v", len(w.record.Saved), err)
	}
	data, err := os.ReadFile(s.recordPath(id))
	if err != nil {
		t.Fatal(err)
	}
	for size, ok := range map[int]bool{64 << 10: true, 64<<10 + 1: false} {
		if err := os.WriteFile(s.recordPath(id), append(slices.Clone(data), strings.Repeat(" ", size-len(data))...), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.load(id); (err == nil) != ok {
			t.Errorf("a record of %d bytes: %v", size, err)
		}
	}
	for thread, ok := range map[string]bool{"": false, strings.Repeat("u", 201): false, "a\x1b": false, strings.Repeat("u", 200): true} {
		if err := os.WriteFile(s.recordPath(id), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := w.Bind(t.Context(), thread); (err == nil) != ok {
			t.Errorf("bound to %q: %v", thread, err)
		}
	}
	if _, err := (Store{Trees: "x", Records: dir}).List(); err == nil {
		t.Error("a relative folder is accepted")
	}
	unlock, err := s.tryLock("x")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.lock(ended, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("a lock of another: %v", err)
	}
	unlock()
	if unlock, err = s.lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	unlock()
	path := filepath.Join(dir, "new")
	if err := errors.Join(writeNew(path, []byte("x"), 0o600)); err != nil {
		t.Error(err)
	}
	if err := writeNew(path, nil, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("written over: %v", err)
	}
}
