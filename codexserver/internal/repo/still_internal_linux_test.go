package repo

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIsStill has folders that differ from an index, and indexes whose names would let a new file
// count as one of theirs.
func TestIsStill(t *testing.T) {
	deep := strings.Repeat("x/", maxDeep) + "x"
	for name, tt := range map[string]struct {
		files, index []string // a name with a slash at its end is that of a folder
		want         bool
	}{
		"nothing":               {nil, nil, true},
		"the same":              {[]string{"a", "b/c", "b.c", "b/d/e", "z"}, []string{"a", "b.c", "b/c", "b/d/e", "z"}, true},
		"git's folder":          {[]string{".git/", "a"}, []string{"a"}, true},
		"a file more":           {[]string{"a", "b/c", "b/d"}, []string{"a", "b/c"}, false},
		"a folder more":         {[]string{"a", "b/"}, []string{"a"}, false},
		"a file less":           {[]string{"b/c"}, []string{"b/c", "b/d"}, false},
		"a folder less":         {[]string{"a"}, []string{"a", "b/c"}, false},
		"another name":          {[]string{"a", "b/c"}, []string{"a", "b/d"}, false},
		"a file for a folder":   {[]string{"b"}, []string{"b/c"}, false},
		"a folder for a file":   {[]string{"b/"}, []string{"b"}, false},
		"the folder itself":     {[]string{"a", "new"}, []string{"./a", "a"}, false},
		"the folder above":      {[]string{"a", "b/c", "new"}, []string{"a", "b/../a", "b/c"}, false},
		"git's folder in it":    {[]string{".git/x", "new"}, []string{".git/x"}, false},
		"no name":               {[]string{"b/c", "b/new"}, []string{"b/", "b/c"}, false},
		"two slashes":           {[]string{"b/c", "b/new"}, []string{"b//c", "b/c"}, false},
		"more folders than fit": {[]string{deep}, []string{deep}, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, file := range tt.files {
				path := filepath.Join(root, file)
				if strings.HasSuffix(file, "/") {
					if err := os.MkdirAll(path, 0o755); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			var x index
			for _, file := range tt.index {
				e := indexed{name: file, mode: 0o100644}
				if info, err := os.Lstat(filepath.Join(root, file)); err == nil {
					stat := info.Sys().(*syscall.Stat_t)
					e.modified, e.modifiedNanos = uint32(stat.Mtim.Sec), uint32(stat.Mtim.Nsec)
					e.changed, e.nanos = uint32(stat.Ctim.Sec), uint32(stat.Ctim.Nsec)
				}
				x = append(x, e)
			}
			if got := isStill(t.Context(), root, x, nil, nil); got != tt.want {
				t.Errorf("still: %v", got)
			}
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(root, link); err != nil {
				t.Fatal(err)
			}
			if isStill(t.Context(), link, x, nil, nil) {
				t.Error("it followed a link")
			}
		})
	}
}

// stillTree is a repository in which nothing has changed, with a snapshot whose index is in a file.
type stillTree struct {
	t       *testing.T
	root    string
	scratch Scratch
	*Snapshot
}

func newStillTree(t *testing.T) stillTree {
	t.Helper()
	s := stillTree{t: t, root: t.TempDir(), scratch: Scratch{Dir: t.TempDir()}}
	MakeRepo(t, s.root)
	s.write("a", "a\n")
	s.write("b", "b\n")
	s.git("add", "-A")
	s.git("commit", "-qm", "first")
	s.git("read-tree", "HEAD") // the index is younger than the files
	s.git("update-index", "--refresh")
	var err error
	if s.Snapshot, err = TakeLater(t.Context(), s.root, s.scratch); err != nil || s.quiet == nil {
		t.Fatalf("the tree is not still, %v", err)
	}
	if err := s.quiet.keep(s.scratch); err != nil || s.quiet.data != "" {
		t.Fatalf("the index is not kept: %v", err)
	}
	return s
}

func (s stillTree) git(args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git", append([]string{"-C", s.root, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

func (s stillTree) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.root, name), []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// TestKeptIndex has an index that is too large for the memory, and is written anew during the turn.
func TestKeptIndex(t *testing.T) {
	s := newStillTree(t)
	for _, want := range [][]Change{nil, {{Path: "a", Kind: Update}, {Path: "b", Kind: Delete}}} {
		got, err := s.Compare(t.Context())
		for i := range got {
			got[i] = Change{Path: got[i].Path, Kind: got[i].Kind}
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(Change{})); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
		if want == nil {
			s.write("a", "another\n")
			s.git("rm", "-q", "b")
			s.git("commit", "-qam", "second")
		}
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(s.scratch.Dir); err != nil || len(entries) > 0 {
		t.Errorf("%d folders are left, %v", len(entries), err)
	}
}

// TestLostIndex loses the index of the snapshot: no file counts as new then.
func TestLostIndex(t *testing.T) {
	for name, lose := range map[string]func(stillTree){
		"removed":            func(s stillTree) { s.remove("index") },
		"its folder removed": func(s stillTree) { s.remove("") },
		"cut":                func(s stillTree) { s.cut() },
		"after a failed attempt": func(s stillTree) {
			ctx, cancel := context.WithCancel(s.t.Context())
			cancel()
			if _, err := s.Compare(ctx); err == nil {
				s.t.Error("compared with a context that has ended")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStillTree(t)
			s.write("a", "another\n")
			lose(s)
			for range 2 {
				if changes, err := s.Compare(t.Context()); err == nil {
					t.Errorf("%+v", changes)
				}
			}
		})
	}
}

func (s stillTree) remove(name string) {
	if err := os.RemoveAll(filepath.Join(s.quiet.kept.dir, name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s stillTree) cut() {
	if err := os.Truncate(filepath.Join(s.quiet.kept.dir, "index"), 40); err != nil {
		s.t.Fatal(err)
	}
}

// TestEmptyFolder looks at a folder without a repository and without files. It needs no folder for
// git before there is one.
func TestEmptyFolder(t *testing.T) {
	root, scratch := t.TempDir(), Scratch{Dir: t.TempDir()}
	s, err := Take(t.Context(), root, scratch)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "x"} {
		if want != "" {
			if err := os.WriteFile(filepath.Join(root, want), []byte("x\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Compare(t.Context())
		if err != nil || len(got) != len(want) || len(got) > 0 && (got[0].Path != want || got[0].Kind != Add) {
			t.Errorf("changes %v, %v", got, err)
		}
		if entries, err := os.ReadDir(scratch.Dir); err != nil || len(entries) != len(want) {
			t.Errorf("%d folders for git, %v", len(entries), err)
		}
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
}
