package repo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

func TestCreate(t *testing.T) {
	b := newBench(t)
	head := b.commit(map[string]string{"a": "one\n", "sub/b": "two\n", "run": "x", "link": "> a"})
	lay(t, b.dir, map[string]string{"a": "changed\n", "new": "n"})
	before := tree(t, b.dir)
	w := b.create(repo.CreateOptions{Cwd: filepath.Join(b.dir, "sub"), ThreadID: "t1"})
	same(t, "the caller's tree", before, tree(t, b.dir))
	same(t, "the worktree", map[string]string{"a": "one\n", "sub/b": "two\n", "run": "x", "link": "> a"}, files(t, w.Path()))
	if w.Base() != head || w.Root() != b.dir || w.Cwd() != filepath.Join(w.Path(), "sub") || filepath.Base(w.Path()) != "repo" {
		t.Errorf("base %s, root %s, cwd %s", w.Base(), w.Root(), w.Cwd())
	}
	if entries, err := os.ReadDir(filepath.Dir(w.Path())); err != nil || len(entries) != 1 {
		t.Errorf("its folder has %v, %v", entries, err)
	}
	// Git and people see a worktree like any other.
	if out := b.gitIn(w.Path(), "status", "--porcelain"); out != "" {
		t.Errorf("status: %s", out)
	}
	if out := b.git("worktree", "list"); !strings.Contains(out, w.Path()) {
		t.Errorf("worktree list: %s", out)
	}
	b.git("worktree", "prune", "--expire=now")
	info, err := os.Stat(filepath.Join(b.store.Records, w.ID(), "record.json"))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("record: %v, %v", info, err)
	}
	s, err := w.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&repo.Status{Base: head, Head: head, Saved: true}, s); diff != "" {
		t.Error("(-want +got)\n" + diff)
	}
	// A later process finds it.
	again, err := b.store.Find("t1")
	if err != nil || again.Path() != w.Path() {
		t.Fatalf("%v, %v", again, err)
	}
	if _, err := b.store.Find("t2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another thread's: %v", err)
	}
	if _, _, err := b.store.Create(t.Context(), repo.CreateOptions{Cwd: b.dir, ThreadID: "t1"}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made twice: %v", err)
	}
	if err := b.create(repo.CreateOptions{}).Bind(t.Context(), "t1"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("bound twice: %v", err)
	}
}

func TestTakeAlong(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": "one\n", "gone": "g", "staged": "s", ".gitignore": "ignored\n", "run": "x", "big.dat": "pointer", ".gitattributes": "*.dat filter=lfs\n"})
	lay(t, b.dir, map[string]string{"a": "two\n", "gone": "-", "staged": "t", "sub/new": "n", "ignored": "i", "run": "+x", "l": "> a", "big.dat": "content", "nested/x": "x"})
	b.git("add", "staged")
	b.git("init", "-q", "nested")
	before := tree(t, b.dir)
	w, skipped, err := b.store.Create(t.Context(), repo.CreateOptions{Cwd: b.dir, Uncommitted: true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the caller's tree", before, tree(t, b.dir))
	same(t, "the worktree", map[string]string{
		"a": "two\n", "staged": "t", "sub/new": "n", ".gitignore": "ignored\n", "run": "+xx", "l": "> a", "big.dat": "pointer", ".gitattributes": "*.dat filter=lfs\n",
	}, files(t, w.Path()))
	want := []repo.Skip{{Path: "nested", Reason: "it is a repository of its own"}, {Path: "big.dat", Reason: `it needs the filter "lfs", which is not run`, Size: 7}}
	if diff := cmp.Diff(want, skipped); diff != "" {
		t.Error("(-want +got)\n" + diff)
	}
	if out := b.gitIn(w.Path(), "status", "--porcelain", "-uall"); out != "M a\n D gone\n M run\n M staged\n?? l\n?? sub/new" {
		t.Errorf("status:\n%s", out)
	}
	// The copied uncommitted work is not a change of the worktree.
	if s, err := w.Status(t.Context()); err != nil || len(s.Files) != 0 || !s.Saved {
		t.Errorf("%+v, %v", s, err)
	}
	if err := w.Discard(t.Context(), ""); err != nil {
		t.Error(err)
	}
}

// TestFive has five threads work on one repository at the same time.
func TestFive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit(map[string]string{"a": "one\n", "b": "two\n", "c": "three\n"})
	before := tree(t, b.dir)
	all := make([]*repo.Worktree, 5)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			w, _, err := b.store.Create(t.Context(), repo.CreateOptions{Cwd: b.dir, ThreadID: string(rune('A' + i))})
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = w
			lay(t, w.Path(), map[string]string{"own" + string(rune('0'+i)): "x", []string{"a", "b", "c", "a", "b"}[i]: "changed by " + string(rune('0'+i)) + "\n"})
			if s, err := w.Status(t.Context()); err != nil || len(s.Files) != 2 {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	same(t, "the caller's tree", before, tree(t, b.dir))
	plans := make([]*repo.Plan, 5)
	for i, w := range all {
		plans[i] = b.plan(w)
	}
	same(t, "the caller's tree after planning", before, tree(t, b.dir))
	// Only the first of those that change the same file succeeds.
	results := make([]error, 5)
	for i, p := range plans {
		group.Go(func() { results[i] = p.Apply(t.Context()) })
	}
	group.Wait()
	got := files(t, b.dir)
	for _, pair := range [][]int{{0, 3}, {1, 4}, {2}} {
		applied := -1
		for _, i := range pair {
			var changed *repo.ChangedError
			switch {
			case results[i] == nil && applied < 0:
				applied = i
			case !errors.As(results[i], &changed):
				t.Errorf("%d: %v", i, results[i])
			}
			if _, ok := got["own"+string(rune('0'+i))]; ok != (results[i] == nil) {
				t.Errorf("%d: its file is there: %t, its result %v", i, ok, results[i])
			}
		}
		if name := []string{"a", "b", "c"}[pair[0]]; applied < 0 || got[name] != "changed by "+string(rune('0'+applied))+"\n" {
			t.Errorf("%v: %q", pair, got[name])
		}
	}
	for i, w := range all {
		err := w.Discard(t.Context(), "")
		var loss *repo.LossError
		if results[i] == nil && err != nil || results[i] != nil && !errors.As(err, &loss) {
			t.Errorf("%d: discard: %v", i, err)
		}
	}
}

// TestSandboxRoots checks that the sandbox lets commands write only to the worktree.
func TestSandboxRoots(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": "one\n"})
	w := b.create(repo.CreateOptions{})
	home := filepath.Dir(b.store.Trees)
	box := sandbox.New(sandbox.Options{Protected: append(w.ReadOnly(), home), Private: []string{home}, Named: w.Writable()})
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
	roots, err := box.Roots(policy, w.Cwd(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{w.Path()}, roots.Paths); diff != "" || len(roots.Notes) > 0 {
		t.Errorf("%s %v", diff, roots.Notes)
	}
	protected := box.Protected(roots.Paths)
	for _, path := range []string{filepath.Join(w.Path(), ".git"), filepath.Join(b.dir, ".git"), filepath.Join(b.dir, ".git", "worktrees", "codex-mcp-"+w.ID()), b.dir, b.store.Records} {
		found := false
		for _, p := range protected {
			found = found || p == path
		}
		if !found {
			t.Errorf("%s is not protected: %q", path, protected)
		}
	}
}

// TestSubmodules checks that a worktree names the submodules that it does not have.
func TestSubmodules(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": "a"})
	b.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", b.dir, "lib/sub")
	b.git("commit", "-qm", "sub")
	for _, uncommitted := range []bool{false, true} {
		w, skipped, err := b.store.Create(t.Context(), repo.CreateOptions{Cwd: b.dir, Uncommitted: uncommitted})
		if err != nil {
			t.Fatal(err)
		}
		if want := []repo.Skip{{Path: "lib/sub", Reason: "it is a submodule"}}; !cmp.Equal(skipped, want) {
			t.Errorf("uncommitted %t: %v", uncommitted, skipped)
		}
		if s, err := w.Status(t.Context()); err != nil || len(s.Files) > 0 || len(s.Skipped) > 0 {
			t.Errorf("%+v, %v", s, err)
		}
	}
}
