//go:build !windows

package repo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestSpecialFiles checks that special files are left out or refused, and block nothing.
func TestSpecialFiles(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": "one\n", "b": "two\n"})
	w := b.create(repo.CreateOptions{})
	for name, want := range map[string]string{
		"a": "", "x": "", ".gitignore": ".gitignore is a special file", "s/.gitattributes": "s/.gitattributes is a special file", "n/.git/HEAD": "n/.git/HEAD is a special file",
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			lay(t, w.Path(), map[string]string{"b": "2\n", name: "-", filepath.Join(filepath.Dir(name), "other"): "x"})
			b.must(syscall.Mkfifo(filepath.Join(w.Path(), name), 0o600))
			defer func() {
				top, _, _ := strings.Cut(name, "/")
				lay(t, w.Path(), map[string]string{top: "-", "other": "-"})
				lay(t, w.Path(), map[string]string{"a": "one\n"})
			}()
			s, err := w.Status(t.Context())
			if want != "" {
				var refused *repo.RefusedError
				if !errors.As(err, &refused) || refused.Reason != filepath.Join(w.Path(), want) {
					t.Errorf("%+v, %v", s, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if name == "a" && (len(s.Skipped) != 1 || s.Skipped[0].Path != "a") {
				t.Errorf("skipped %v", s.Skipped)
			}
			if len(s.Files) != 2 || s.Files[0].Path != "b" || s.Files[1].Path != "other" {
				t.Errorf("%+v", s.Files)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	b := newBench(t)
	head := b.commit(map[string]string{"a": text, "gone": "1\n2\n", "run": "x", "from": text + text, "bin": "\x00"})
	w := b.create(repo.CreateOptions{})
	lay(t, w.Path(), map[string]string{"a": replaced("1", "one", "9", "x\n9"), "gone": "-", "run": "+x", "from": "-", "to": text + text, "bin": "\x00\x01", "l": "> a", ".git": "gitdir: elsewhere\n"})
	s, err := w.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &repo.Status{
		Base: head, Head: head, Notes: []string{"the worktree's .git was replaced: do not run git in the worktree"},
		Files: []repo.Change{
			{Path: "a", Kind: repo.Update, Lines: &repo.Lines{Added: 2, Removed: 1}},
			{Path: "bin", Kind: repo.Update},
			{Path: "gone", Kind: repo.Delete, Lines: &repo.Lines{Removed: 2}},
			{Path: "l", Kind: repo.Add, Lines: &repo.Lines{Added: 1}},
			{Path: "run", Kind: repo.Update, Lines: &repo.Lines{}},
			{Path: "to", From: "from", Kind: repo.Rename, Lines: &repo.Lines{}},
		},
	}
	if diff := cmp.Diff(want, s, cmpopts.IgnoreUnexported(repo.Change{})); diff != "" {
		t.Error("(-want +got)\n" + diff)
	}
}

// TestMany checks that a list of files is limited, and a plan is not.
func TestMany(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit(map[string]string{"a": text})
	w := b.create(repo.CreateOptions{})
	for i := range 1001 {
		b.must(os.WriteFile(filepath.Join(w.Path(), fmt.Sprint("f", i)), []byte("x"), 0o600))
	}
	s, err := w.Status(t.Context())
	if err != nil || len(s.Files) != 1000 || s.More != 1 {
		t.Errorf("%d and %d, %v", len(s.Files), s.More, err)
	}
	if p := b.plan(w); p.Len() != 1001 || len(p.Changes()) != 1001 {
		t.Errorf("the plan has %d files, and shows %d", p.Len(), len(p.Changes()))
	}
}

// TestFilterOfCaller checks that a file is left out if only the caller's tree has a filter
// for it, and that it does not count as saved.
func TestFilterOfCaller(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a.dat": "pointer", "b": "b"})
	w := b.create(repo.CreateOptions{})
	lay(t, b.dir, map[string]string{".gitattributes": "*.dat filter=lfs\n"})
	lay(t, w.Path(), map[string]string{"a.dat": "content", "b": "B"})
	p := b.plan(w)
	if len(p.Skipped) != 1 || p.Skipped[0].Path != "a.dat" {
		t.Errorf("skipped %v", p.Skipped)
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := files(t, b.dir); got["a.dat"] != "pointer" || got["b"] != "B" {
		t.Errorf("%q", got)
	}
	var loss *repo.LossError
	if err := w.Discard(t.Context(), ""); !errors.As(err, &loss) {
		t.Errorf("%v", err)
	}
}
