package repo_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/google/go-cmp/cmp"
)

// fixture is a working tree with the bare repository ../o.git next to it.
type fixture struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) *fixture {
	r := &fixture{t, filepath.Join(t.TempDir(), "w")}
	repo.MakeRepo(t, r.dir)
	return r
}

// copies returns copies of the repository and of the one next to it, for the rows of a table. To their
// indexes all files may have changed, so git reads them again.
func (r *fixture) copies(t testing.TB, n int) []*fixture {
	t.Helper()
	all := make([]*fixture, n)
	for i := range all {
		all[i] = &fixture{t, filepath.Join(t.TempDir(), "w")}
		if err := os.CopyFS(filepath.Dir(all[i].dir), os.DirFS(filepath.Dir(r.dir))); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// in returns the repository for a row of a table.
func (r *fixture) in(t testing.TB) *fixture { return &fixture{t, r.dir} }

func (r *fixture) git(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return out
}

func (r *fixture) try(args ...string) (string, error) {
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (r *fixture) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *fixture) configure(settings ...setting) {
	r.t.Helper()
	configure(r.t, filepath.Join(r.dir, ".git", "config"), settings...)
}

func (r *fixture) commit(message string) string {
	r.t.Helper()
	r.git("add", "-A")
	return hashIn(r.git("-c", "core.abbrev=no", "commit", "-m", message))
}

func (r *fixture) push() {
	r.t.Helper()
	if !exists(filepath.Join(r.dir, "../o.git")) {
		r.git("init", "-q", "--bare", "--template=", "../o.git")
	}
	r.git("remote", "add", "origin", "../o.git")
	r.git("push", "-q", "origin", "main")
}

func TestDiffToRemote(t *testing.T) {
	t.Parallel()
	const changed = "diff --git a/a.txt b/a.txt\nindex 5626abf..f719efd 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"
	const added = "diff --git a/untracked.txt b/untracked.txt\nnew file mode 100644\nindex 0000000..3e75765\n--- /dev/null\n+++ b/untracked.txt\n@@ -0,0 +1 @@\n+new\n"
	rows := []struct {
		name string
		// change changes a tree with a.txt, committed and pushed as sha, and returns the
		// commit to find, the folder to ask from and the diff.
		change func(r *fixture, sha string) (want, sub, diff string)
	}{
		{"nothing", func(_ *fixture, sha string) (string, string, string) { return sha, "", "" }},
		{"as recorded", func(r *fixture, sha string) (string, string, string) {
			r.write("a.txt", "two\n")
			r.write("untracked.txt", "new\n")
			return sha, "", changed + added
		}},
		{"from a folder below, untracked files last", func(r *fixture, sha string) (string, string, string) {
			r.write("a.txt", "two\n")
			r.write("Sub/x", "x\n")
			return sha, "Sub", changed + "diff --git a/Sub/x b/Sub/x\nnew file mode 100644\nindex 0000000..587be6b\n--- /dev/null\n+++ b/Sub/x\n@@ -0,0 +1 @@\n+x\n"
		}},
		{"commits that were not pushed", func(r *fixture, sha string) (string, string, string) {
			r.write("a.txt", "three\n")
			r.commit("two")
			r.write("a.txt", "two\n")
			r.commit("three")
			return sha, "", changed
		}},
		{"a branch that was pushed", func(r *fixture, _ string) (string, string, string) {
			r.git("checkout", "-q", "-b", "feature")
			r.write("b", "b\n")
			sha := r.commit("feature")
			r.git("push", "-q", "origin", "feature")
			r.write("a.txt", "two\n")
			r.commit("more")
			return sha, "", changed
		}},
		{"the remote's branch went on without us", func(r *fixture, sha string) (string, string, string) {
			r.git("checkout", "-q", "-b", "feature")
			r.write("a.txt", "two\n")
			r.commit("feature")
			r.git("checkout", "-q", "main")
			r.write("m", "m\n")
			r.commit("main")
			r.git("push", "-q", "origin", "main")
			r.git("checkout", "-q", "feature")
			return sha, "", changed
		}},
		{"a merge: the nearer of two", func(r *fixture, _ string) (string, string, string) {
			r.git("checkout", "-q", "-b", "old")
			r.write("o", "o\n")
			r.commit("old")
			r.git("checkout", "-q", "main")
			r.write("m", "m\n")
			sha := r.commit("main")
			r.git("push", "-q", "origin", "main")
			r.git("merge", "-q", "-m", "merge", "old")
			return sha, "", "diff --git a/o b/o\nnew file mode 100644\nindex 0000000..13e7564\n--- /dev/null\n+++ b/o\n@@ -0,0 +1 @@\n+o\n"
		}},
		{"renamed and deleted", func(r *fixture, _ string) (string, string, string) {
			r.write("b", "b\nb\nb\n")
			sha := r.commit("b")
			r.git("push", "-q", "origin", "main")
			r.git("mv", "b", "c")
			r.git("rm", "-q", "a.txt")
			return sha, "", "diff --git a/a.txt b/a.txt\ndeleted file mode 100644\nindex 5626abf..0000000\n--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n" +
				"diff --git a/b b/c\nsimilarity index 100%\nrename from b\nrename to c\n"
		}},
		{"names, binary, empty, no line break", func(r *fixture, sha string) (string, string, string) {
			r.write("a b", "x\n")
			r.write("bin", "bin\x00x")
			r.write("empty", "")
			r.write("ü*", "z")
			return sha, "", "diff --git a/a b b/a b\nnew file mode 100644\nindex 0000000..587be6b\n--- /dev/null\n+++ b/a b\t\n@@ -0,0 +1 @@\n+x\n" +
				"diff --git a/bin b/bin\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..e8996621d8f762f3d6df65c95f7b7dc049436695\nGIT binary patch\nliteral 5\nMcmYew%wwnk00mV6vH$=8\n\nliteral 0\nHcmV?d00001\n\n" +
				"diff --git a/empty b/empty\nnew file mode 100644\nindex 0000000..e69de29\n" +
				"diff --git \"a/\\303\\274*\" \"b/\\303\\274*\"\nnew file mode 100644\nindex 0000000..fa7af8b\n--- /dev/null\n+++ \"b/\\303\\274*\"\n@@ -0,0 +1 @@\n+z\n\\ No newline at end of file\n"
		}},
		{"bytes that are no UTF-8", func(r *fixture, sha string) (string, string, string) {
			r.write("latin", "\xfc\n")
			return sha, "", "diff --git a/latin b/latin\nnew file mode 100644\nindex 0000000..7202bc6\n--- /dev/null\n+++ b/latin\n@@ -0,0 +1 @@\n+\uFFFD\n"
		}},
		{"ignored files and other repositories", func(r *fixture, sha string) (string, string, string) {
			r.write(".git/info/exclude", "ignored\n")
			r.write("ignored", "x")
			r.write("nested/x", "x")
			r.git("init", "-q", "nested")
			return sha, "", ""
		}},
		{"a configuration that changes the form", func(r *fixture, sha string) (string, string, string) {
			r.configure(setting{"diff.noprefix", "true"}, setting{"color.ui", "always"}, setting{"diff.external", "false"}, setting{"diff.relative", "true"}, setting{"diff.foo.textconv", "false"})
			r.write(".git/info/attributes", "* diff=foo\n")
			r.write("a.txt", "two\n")
			r.write("untracked.txt", "new\n")
			return sha, "", changed + added
		}},
	}
	r := newRepo(t)
	r.write("a.txt", "one\n")
	first := r.commit("first")
	r.push()
	copies := r.copies(t, len(rows))
	for i, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			r := copies[i].in(t)
			want, sub, diff := tt.change(r, first)
			before := stamps(t, r.dir)
			sha, got, err := repo.DiffToRemote(t.Context(), filepath.Join(r.dir, sub), repo.Scratch{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if sha != want {
				t.Errorf("sha %s, want %s", sha, want)
			}
			if d := cmp.Diff(diff, got); d != "" {
				t.Error("(-want +got)\n" + d)
			}
			same(t, "the repository", before, stamps(t, r.dir))
		})
	}
}

// TestDiffToRemoteRunsNothing checks that no program of the repository runs.
func TestDiffToRemoteRunsNothing(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	r.push()
	trap := filepath.Join(t.TempDir(), "ran")
	script := "touch '" + trap + "'; cat"
	r.configure(all(script, "filter.evil.clean", "filter.evil.smudge", "filter.evil=x.process", "filter.EviL.clean", "core.fsmonitor", "diff.external", "diff.evil.command", "diff.evil.textconv", "core.pager")...)
	r.configure(setting{"filter.evil.required", "true"})
	r.write(".git/hooks/post-index-change", "#!/bin/sh\n"+script)
	if err := os.Chmod(filepath.Join(r.dir, ".git/hooks/post-index-change"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.write(".gitattributes", "*.txt filter=evil diff=evil\nb* filter=evil=x\nc* filter=EviL\n")
	for _, name := range []string{"a.txt", "b", "c", "d.txt"} {
		r.write(name, "two\n")
	}
	_, got, err := repo.DiffToRemote(t.Context(), r.dir, repo.Scratch{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", "b", "c", "d.txt"} {
		if !strings.Contains(got, "+++ b/"+name+"\n") {
			t.Errorf("the diff lacks %s:\n%s", name, got)
		}
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("a program of the repository was run")
	}
}

func TestDiffToRemoteRefused(t *testing.T) {
	r := newRepo(t)
	check := func(name, dir, want string) {
		t.Helper()
		_, _, err := repo.DiffToRemote(t.Context(), dir, repo.Scratch{Dir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
	check("no repository", t.TempDir(), "not in a git repository")
	check("no folder", filepath.Join(r.dir, "no"), "no such file")
	check("no remote", r.dir, "no remote")
	r.write("a.txt", "one\n")
	r.commit("first")
	r.push()
	r.git("checkout", "-q", "--orphan", "other")
	check("no commit", r.dir, "rev-parse")
	r.commit("other")
	check("nothing in common", r.dir, "has a commit of this branch")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := repo.DiffToRemote(ctx, r.dir, repo.Scratch{Dir: t.TempDir()}); err == nil {
		t.Error("no error under a context that had ended")
	}
}
