//go:build !windows

package repo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/google/go-cmp/cmp"
)

// TestRepositoryRefused checks that repositories that lead elsewhere are refused, and that
// nothing is left of the attempt.
func TestRepositoryRefused(t *testing.T) {
	first := newBench(t)
	first.commit(map[string]string{"a": "one\n"})
	elsewhere := func(b *bench) string {
		dir := filepath.Join(filepath.Dir(b.dir), "elsewhere")
		b.must(os.Mkdir(dir, 0o755))
		b.must(os.CopyFS(filepath.Join(dir, ".git"), os.DirFS(filepath.Join(first.dir, ".git"))))
		return dir
	}
	for _, tt := range []struct {
		name, want string
		lay        func(b *bench) (cwd string)
	}{
		{"no repository", "not in a git repository", func(b *bench) string { return filepath.Dir(b.dir) }},
		{"a relative path", "is not an absolute path", func(*bench) string { return "repo" }},
		{"no folder", "no such file", func(b *bench) string { return b.dir + "/no" }},
		{"no commit", "has no commit yet", func(b *bench) string { b.git("checkout", "-q", "--orphan", "new"); return b.dir }},
		{"a HEAD that is none", "is not in a git repository", func(b *bench) string { lay(b.t, b.dir, map[string]string{".git/HEAD": "ref: ../x\n"}); return b.dir }},
		{"a HEAD that is no commit", "is not a commit", func(b *bench) string {
			lay(b.t, b.dir, map[string]string{".git/HEAD": b.git("rev-parse", "HEAD^{tree}") + "\n"})
			return b.dir
		}},
		{"a branch that is none", "cannot be read", func(b *bench) string {
			lay(b.t, b.dir, map[string]string{".git/HEAD": "ref: refs/../x\n"})
			return b.dir
		}},
		{"a HEAD that waits", "is not in a git repository", func(b *bench) string {
			lay(b.t, b.dir, map[string]string{".git/HEAD": "-"})
			b.must(syscall.Mkfifo(filepath.Join(b.dir, ".git", "HEAD"), 0o600))
			return b.dir
		}},
		{"bare", "is bare", func(b *bench) string { b.configure(setting{"core.bare", "true"}); return b.dir }},
		{"another working tree", "names another working tree", func(b *bench) string {
			b.configure(setting{"core.worktree", elsewhere(b)})
			return b.dir
		}},
		{"another working tree, for this worktree", "names another working tree", func(b *bench) string {
			b.configure(setting{"extensions.worktreeConfig", "true"})
			lay(b.t, b.dir, map[string]string{".git/config.worktree": "[core]\n\tworktree = " + elsewhere(b) + "\n"})
			return b.dir
		}},
		{"an unknown extension", "has the extension", func(b *bench) string {
			b.configure(setting{"core.repositoryFormatVersion", "1"}, setting{"extensions.future", "x"})
			return b.dir
		}},
		{"refs in tables", "has the extension", func(b *bench) string { b.configure(setting{"extensions.refStorage", "reftable"}); return b.dir }},
		{"a .git that is another's", "does not name it", func(b *bench) string {
			dir := elsewhere(b)
			lay(b.t, b.dir, map[string]string{".git": "-"})
			lay(b.t, b.dir, map[string]string{".git": "gitdir: " + dir + "/.git\n"})
			return b.dir
		}},
		{"a .git that is a link", "does not name it", func(b *bench) string {
			dir := elsewhere(b)
			lay(b.t, b.dir, map[string]string{".git": "-"})
			lay(b.t, b.dir, map[string]string{".git": "> " + dir + "/.git"})
			return b.dir
		}},
		{"a .git that is another worktree's", "does not belong to the working tree", func(b *bench) string {
			dir := elsewhere(b)
			b.gitIn(dir, "worktree", "add", "-q", "../third")
			lay(b.t, b.dir, map[string]string{".git": "-"})
			lay(b.t, b.dir, map[string]string{".git": "gitdir: " + dir + "/.git/worktrees/third\n"})
			return b.dir
		}},
		{"a commondir that leads elsewhere", "is not the folder of a worktree", func(b *bench) string {
			lay(b.t, b.dir, map[string]string{".git/commondir": elsewhere(b) + "/.git\n"})
			return b.dir
		}},
		{"a folder for worktrees that is a link", "is not a folder", func(b *bench) string {
			lay(b.t, b.dir, map[string]string{".git/worktrees": "> ../../elsewhere"})
			elsewhere(b)
			return b.dir
		}},
		{"a store in the repository", "lies in the repository", func(b *bench) string {
			b.store = repo.StoreIn(filepath.Join(b.dir, "home"))
			return b.dir
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := first.copied(t)
			cwd := tt.lay(b)
			w, _, err := b.store.Create(t.Context(), repo.CreateOptions{Cwd: cwd})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, %v", w, err)
			}
			for _, dir := range []string{b.store.Trees, b.store.Records} {
				left, err := filepath.Glob(filepath.Join(dir, "[0-9a-f]*"))
				if err != nil || len(left) > 0 {
					t.Errorf("left: %q, %v", left, err)
				}
			}
			if left, err := os.ReadDir(filepath.Join(filepath.Dir(b.dir), "elsewhere")); err == nil && len(left) != 1 {
				t.Errorf("made elsewhere: %v", left)
			}
		})
	}
}

// TestRepositoryForms makes worktrees of unusual but valid repositories.
func TestRepositoryForms(t *testing.T) {
	t.Parallel()
	first := newBench(t)
	first.commit(map[string]string{"a": "one\n"})
	for _, tt := range []struct {
		name string
		lay  func(b *bench) (cwd string)
	}{
		{"a submodule", func(b *bench) string {
			b.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", b.dir, "sub")
			return filepath.Join(b.dir, "sub")
		}},
		{"a worktree, with sha256 and an index in two parts", func(b *bench) string {
			dir := filepath.Join(filepath.Dir(b.dir), "sha256")
			b.must(os.Mkdir(dir, 0o755))
			b.gitIn(dir, "init", "-q", "--template=", "--object-format=sha256")
			lay(b.t, dir, map[string]string{"a": "one\n"})
			b.gitIn(dir, "add", "-A")
			b.gitIn(dir, "commit", "-qm", "x")
			b.gitIn(dir, "worktree", "add", "-q", "../third")
			third := filepath.Join(filepath.Dir(b.dir), "third")
			b.gitIn(third, "update-index", "--split-index")
			return third
		}},
		{"a shallow and sparse one", func(b *bench) string {
			b.commit(map[string]string{"in/x": "x", "out/y": "y"})
			dir := filepath.Join(filepath.Dir(b.dir), "shallow")
			b.git("clone", "-q", "--depth=1", "file://"+b.dir, dir)
			b.gitIn(dir, "sparse-checkout", "set", "--cone", "--sparse-index", "in")
			return dir
		}},
		{"objects elsewhere, and a name that needs quotes, behind a link", func(b *bench) string {
			dir, link := filepath.Join(filepath.Dir(b.dir), "#\"o d\\d:ü"), filepath.Join(filepath.Dir(b.dir), "link")
			b.git("clone", "-q", "--shared", b.dir, dir)
			b.must(os.Symlink(dir, link))
			return link
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := first.copied(t)
			cwd := tt.lay(b)
			lay(t, cwd, map[string]string{"along": "x"})
			w := b.create(repo.CreateOptions{Cwd: cwd, Uncommitted: true})
			if got := files(t, w.Path()); got["a"] != "one\n" || got["along"] != "x" {
				t.Errorf("%q", got)
			}
			lay(t, w.Path(), map[string]string{"a": "two\n", "along": "y"})
			if err := b.plan(w).Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := files(t, w.Root()); got["a"] != "two\n" || got["along"] != "y" {
				t.Errorf("%q", got)
			}
			branch, err := w.Branch(t.Context(), repo.BranchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := b.gitIn(cwd, "show", branch.Name+":a"); got != "two" {
				t.Errorf("%q", got)
			}
			if err := w.Discard(t.Context(), ""); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReplaced checks that a worktree whose path leads elsewhere is not read, and that its
// target is not removed.
func TestReplaced(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": "one\n"})
	w := b.create(repo.CreateOptions{})
	moved := filepath.Join(filepath.Dir(b.dir), "moved")
	b.must(os.Rename(w.Path(), moved))
	b.must(os.Symlink(moved, w.Path()))
	var refused *repo.RefusedError
	if _, err := w.Status(t.Context()); !errors.As(err, &refused) {
		t.Errorf("status: %v", err)
	}
	if _, err := w.Plan(t.Context()); !errors.As(err, &refused) {
		t.Errorf("plan: %v", err)
	}
	if _, err := w.Branch(t.Context(), repo.BranchOptions{}); !errors.As(err, &refused) {
		t.Errorf("branch: %v", err)
	}
	var loss *repo.LossError
	if err := w.Discard(t.Context(), ""); !errors.As(err, &loss) || loss.Unknown == "" {
		t.Fatalf("discard: %v", err)
	}
	if err := w.Discard(t.Context(), loss.Token); err != nil {
		t.Fatal(err)
	}
	if got := files(t, moved); got["a"] != "one\n" || exists(w.Path()) {
		t.Errorf("%q", got)
	}
}

func TestRecordRefused(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": "one\n"})
	w := b.create(repo.CreateOptions{ThreadID: "t"})
	path := filepath.Join(b.store.Records, w.ID(), "record.json")
	data, err := os.ReadFile(path)
	b.must(err)
	for _, tt := range []struct{ old, new, want string }{
		{`"version":1`, `"version":2`, "version"},
		{`"version":1`, `"version":1,"more":1`, "more"},
		{`"version":1`, `"version":1,"version":1`, "version"},
		{`"id":"` + w.ID(), `"id":"0000000000000000`, "id"},
		{`"phase":"use"`, `"phase":"x"`, "phase"},
		{`"threadId":"t"`, `"threadId":"t\u001b"`, "threadId"},
		{`"root":"`, `"root":"/..`, "root"},
		{`"root":"`, `"root":"x`, "root"},
		{`"gitDir":"`, `"gitDir":"/etc`, "commonDir"},
		{`"commonDir":"`, `"commonDir":"/etc`, "commonDir"},
		{`"folder":"."`, `"folder":"../x"`, "folder"},
		{`"path":"`, `"path":"/tmp`, "path"},
		{w.Path() + `"`, w.Path() + `/../../x"`, "path"},
		{w.Path() + `"`, w.Path() + `/x"`, "path"},
		{`"base":"` + w.Base(), `"base":"--output=/tmp/x`, "object"},
		{`"start":"`, `"start":"HEAD`, "object"},
	} {
		text := strings.Replace(string(data), tt.old, tt.new, 1)
		if text == string(data) {
			t.Fatalf("%s is not in %s", tt.old, data)
		}
		b.must(os.WriteFile(path, []byte(text), 0o600))
		var refused *repo.RecordError
		if _, err := b.store.Find("t"); !errors.As(err, &refused) || !strings.Contains(refused.Member, tt.want) {
			t.Errorf("%s: %v", tt.new, err)
		}
		if err := b.store.Recover(); !errors.As(err, &refused) {
			t.Errorf("%s: recover: %v", tt.new, err)
		}
		if _, err := w.Status(t.Context()); !errors.As(err, &refused) {
			t.Errorf("%s: status: %v", tt.new, err)
		}
		if err := w.Discard(t.Context(), ""); err == nil {
			t.Errorf("%s: discarded", tt.new)
		}
	}
	b.must(os.WriteFile(path, data, 0o600))
	b.must(os.Chmod(path, 0o666))
	var refused *repo.RecordError
	if _, err := b.store.Find("t"); !errors.As(err, &refused) {
		t.Errorf("a record that others may write: %v", err)
	}
	b.must(os.Remove(path))
	b.must(syscall.Mkfifo(path, 0o600))
	if _, err := b.store.Find("t"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a pipe: %v", err)
	}
	b.must(os.Remove(path))
	b.must(os.WriteFile(path, data, 0o600))
	if found, err := b.store.List(); err != nil || len(found) != 1 || cmp.Diff(found[0].Path(), w.Path()) != "" {
		t.Errorf("%v, %v", found, err)
	}
	if got := files(t, w.Path()); got["a"] != "one\n" {
		t.Errorf("%q", got)
	}
}
