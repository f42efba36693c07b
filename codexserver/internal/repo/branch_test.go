package repo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
)

func TestBranch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	base := b.commit(map[string]string{"a": "one\n", "gone": "g", "big.dat": "pointer", ".gitattributes": "*.dat filter=lfs\n"})
	lay(t, b.dir, map[string]string{"along": "x"})
	w := b.create(repo.CreateOptions{Uncommitted: true})
	lay(t, w.Path(), map[string]string{"a": "two\n", "gone": "-", "s/new": "n", "run": "#!", "l": "> a", "big.dat": "content"})
	lay(t, w.Path(), map[string]string{"run": "+x"})
	before := files(t, b.dir)
	status := b.git("status", "--porcelain")
	branch, err := w.Branch(t.Context(), repo.BranchOptions{Name: "work/one", Message: "say what\n\nand why"})
	if err != nil {
		t.Fatal(err)
	}
	if branch.Name != "work/one" || b.git("rev-parse", "work/one") != branch.Commit || b.git("rev-parse", "work/one^") != base {
		t.Errorf("%+v", branch)
	}
	if got := b.git("log", "-1", "--format=%B", "work/one"); got != "say what\n\nand why" {
		t.Errorf("message %q", got)
	}
	if got := b.git("diff", "--no-renames", "--name-status", base, "work/one"); got != "M\ta\nA\talong\nD\tgone\nA\tl\nA\trun\nA\ts/new" {
		t.Errorf("changes:\n%s", got)
	}
	if got := b.git("show", "work/one:big.dat"); got != "pointer" {
		t.Errorf("big.dat is %q", got)
	}
	if len(branch.Skipped) != 1 || branch.Skipped[0].Path != "big.dat" {
		t.Errorf("skipped %v", branch.Skipped)
	}
	b.git("fsck", "--strict", "--no-dangling")
	if packs, err := filepath.Glob(filepath.Join(b.dir, ".git", "objects", "pack", "*.pack")); err != nil || len(packs) != 1 {
		t.Errorf("packs: %q, %v", packs, err)
	}
	same(t, "the caller's tree", before, files(t, b.dir))
	if got := b.git("status", "--porcelain"); got != status {
		t.Errorf("status: %s", got)
	}
	// A second branch has nothing new to commit, and must have another name.
	b.git("pack-refs", "--all")
	for _, name := range []string{"work/one", "work", "work/one/two", "main", "-x", "a..b", "x.lock", "@{1}", "HEAD", "a b", "x/../main", "refs/heads/", "ü", strings.Repeat("x", 201)} {
		var refused *repo.RefusedError
		if _, err := w.Branch(t.Context(), repo.BranchOptions{Name: name}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.must(os.WriteFile(filepath.Join(b.dir, ".git", "refs", "heads", "held.lock"), nil, 0o600))
	var held *repo.RefusedError
	if _, err := w.Branch(t.Context(), repo.BranchOptions{Name: "held"}); !errors.As(err, &held) || !strings.Contains(err.Error(), "it is in use") {
		t.Errorf("a branch that git is making: %v", err)
	}
	for _, pattern := range []string{"*.lock", "*/*.lock"} {
		if locks, err := filepath.Glob(filepath.Join(b.dir, ".git", "refs", "heads", pattern)); err != nil || len(locks) > 0 && filepath.Base(locks[0]) != "held.lock" {
			t.Errorf("locks %q, %v", locks, err)
		}
	}
	if got := b.git("for-each-ref", "--format=%(refname)"); got != "refs/heads/main\nrefs/heads/work/one" {
		t.Errorf("refs:\n%s", got)
	}
	if _, err := w.Branch(t.Context(), repo.BranchOptions{}); err != nil || b.git("rev-parse", "codex/"+w.ID()+"^{tree}") != b.git("rev-parse", "work/one^{tree}") {
		t.Errorf("the second: %v", err)
	}
	// Commits that the user made in the worktree come first.
	b.gitIn(w.Path(), "commit", "-qam", "theirs")
	theirs := b.gitIn(w.Path(), "rev-parse", "HEAD")
	third, err := w.Branch(t.Context(), repo.BranchOptions{Name: "three"})
	if err != nil || b.git("rev-parse", "three^") != theirs {
		t.Errorf("%+v, %v", third, err)
	}
	b.gitIn(w.Path(), "checkout", "-q", "--orphan", "other")
	b.gitIn(w.Path(), "commit", "-qm", "other")
	var refused *repo.RefusedError
	if _, err := w.Branch(t.Context(), repo.BranchOptions{Name: "four"}); !errors.As(err, &refused) {
		t.Errorf("of another origin: %v", err)
	}
	// A branch without changes needs no commit, and may have a long name.
	long := strings.Repeat("x", 200)
	if made, err := b.create(repo.CreateOptions{}).Branch(t.Context(), repo.BranchOptions{Name: long}); err != nil || made.Commit != base || b.git("rev-parse", long) != base {
		t.Errorf("without changes: %+v, %v", made, err)
	}
}

// TestBranchElsewhere checks that nothing is written behind a link in the repository.
func TestBranchElsewhere(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": "one\n"})
	elsewhere := t.TempDir()
	w := b.create(repo.CreateOptions{})
	lay(t, w.Path(), map[string]string{"a": "two\n"})
	for _, name := range []string{".git/objects/pack", ".git/refs/heads/codex"} {
		lay(t, b.dir, map[string]string{name: "-"})
		lay(t, b.dir, map[string]string{name: "> " + elsewhere})
		var refused *repo.RefusedError
		if _, err := w.Branch(t.Context(), repo.BranchOptions{}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
			t.Errorf("%s: %v, %v", name, left, err)
		}
		b.must(os.Remove(filepath.Join(b.dir, filepath.FromSlash(name))))
		b.must(os.Mkdir(filepath.Join(b.dir, filepath.FromSlash(name)), 0o755))
	}
}
