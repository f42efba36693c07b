//go:build unix

package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// traps are settings of git that name programs, or lead to other configuration.
var traps = []string{
	"core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy", "core.alternateRefsCommand",
	"diff.external", "diff.evil.command", "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
	"filter.EviL.clean", "merge.evil.driver", "gpg.program", "gpg.ssh.program", "credential.helper", "sequence.editor",
	"pager.diff", "pager.rev-list", "remote.origin.uploadpack", "remote.origin.vcs", "uploadpack.packObjectsHook",
}

// TestHostileRepository checks that the repository's configuration runs no program and does
// not change the result.
func TestHostileRepository(t *testing.T) {
	rows := []struct {
		name string
		in   int // the rows of a number share a repository
		// lay puts something into the repository that would start script.
		lay func(r *fixture, script string)
	}{ // in order: after some of them git commits no more
		{"a repository in it", 1, func(r *fixture, script string) {
			r.git("init", "-q", "nested")
			r.write("nested/x", "x")
			r.git("-C", "nested", "add", "x")
			r.git("-C", "nested", "commit", "-q", "-m", "x")
			configure(r.t, filepath.Join(r.dir, "nested", ".git", "config"), setting{"core.fsmonitor", script})
			r.git("add", "nested")
			r.git("commit", "-q", "-m", "nested")
			r.git("push", "-q", "origin", "main")
			r.write("nested/x", "y")
		}},
		{"an index in two parts", 1, func(r *fixture, _ string) { r.git("update-index", "--split-index") }},
		{"hooks", 1, func(r *fixture, script string) {
			for _, name := range []string{"post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman", "reference-transaction", "query-watchman"} {
				for _, dir := range []string{".git/hooks", ".git/own"} {
					r.write(dir+"/"+name, "#!/bin/sh\n"+script)
					if err := os.Chmod(filepath.Join(r.dir, dir, name), 0o755); err != nil {
						r.t.Fatal(err)
					}
				}
			}
			r.configure(setting{"core.hooksPath", ".git/own"})
		}},
		{"aliases", 1, func(r *fixture, script string) {
			for _, command := range []string{"diff", "rev-parse", "rev-list", "ls-files", "add", "config", "for-each-ref"} {
				r.configure(setting{"alias." + command, "!" + script})
			}
		}},
		{"a worktree's configuration", 1, func(r *fixture, script string) {
			r.configure(setting{"extensions.worktreeConfig", "true"})
			configure(r.t, filepath.Join(r.dir, ".git", "config.worktree"), all(script, traps...)...)
		}},
		{"an included file", 1, func(r *fixture, script string) {
			configure(r.t, filepath.Join(r.dir, "included"), all(script, traps...)...)
			r.configure(setting{"include.path", "../included"})
			r.write(".git/info/exclude", "included\n")
		}},
		{"programs", 1, func(r *fixture, script string) {
			r.configure(all(script, traps...)...)
			r.configure(setting{"filter.evil.required", "true"})
		}},
		{"objects that a remote has promised", 1, func(r *fixture, script string) {
			r.git("config", "remote.origin.url", "ext::sh -c '"+script+"'") // instead of the one it has
			r.configure(setting{"remote.origin.promisor", "true"}, setting{"extensions.partialClone", "origin"}, setting{"protocol.ext.allow", "always"})
		}},
		{"another working tree", 1, func(r *fixture, _ string) {
			r.configure(setting{"core.worktree", filepath.Dir(r.dir)})
		}},
		{"a .git that is a link", 2, func(r *fixture, script string) {
			r.configure(setting{"core.fsmonitor", script})
			for _, err := range []error{
				os.Rename(filepath.Join(r.dir, ".git"), filepath.Join(r.dir, "..", "moved")), os.Symlink("../moved", filepath.Join(r.dir, ".git")),
			} {
				if err != nil {
					r.t.Fatal(err)
				}
			}
		}},
		{"its own git", 2, func(r *fixture, script string) {
			r.write("node_modules/.bin/git", "#!/bin/sh\n"+script)
			if err := os.Chmod(filepath.Join(r.dir, "node_modules/.bin/git"), 0o755); err != nil {
				r.t.Fatal(err)
			}
			r.write(".git/info/exclude", "node_modules\n")
			r.t.Setenv("PATH", filepath.Join(r.dir, "node_modules/.bin")+":"+filepath.Join(r.dir, "..", "w", "node_modules", ".bin")+":"+os.Getenv("PATH"))
		}},
		{"another list of what is ignored, attributes that wait", 2, func(r *fixture, _ string) {
			pipe := filepath.Join(filepath.Dir(r.dir), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				r.t.Fatal(err)
			}
			r.configure(all(pipe, "core.attributesFile", "core.excludesFile", "include.path")...)
		}},
		{"a home in it", 3, func(r *fixture, script string) {
			r.write("home/.gitconfig", "[core]\n\tfsmonitor = \""+script+"\"\n[diff]\n\tnoprefix = true\n[core]\n\texcludesFile = /dev/null\n[filter \"evil\"]\n\tclean = \""+script+"\"\n")
			r.write(".git/info/exclude", "home\n")
			if err := os.Unsetenv("GIT_CONFIG_GLOBAL"); err != nil {
				r.t.Fatal(err)
			}
			r.t.Setenv("HOME", filepath.Join(r.dir, "home"))
		}},
		{"variables of git's", 3, func(r *fixture, script string) {
			r.t.Setenv("GIT_EXTERNAL_DIFF", script)
			r.t.Setenv("GIT_INDEX_FILE", "/dev/null")
			r.t.Setenv("GIT_DIR", "/nowhere")
			r.t.Setenv("GIT_CONFIG_COUNT", "1")
			r.t.Setenv("GIT_CONFIG_KEY_0", "filter.evil.clean")
			r.t.Setenv("GIT_CONFIG_VALUE_0", script)
		}},
	}
	r := newRepo(t)
	r.write(".gitattributes", "* filter=evil diff=evil merge=evil\nb* filter=EviL\n")
	r.write("a.txt", "one\n")
	r.commit("first")
	r.push()
	for i, r := range r.copies(t, 3) {
		in := i + 1
		t.Run(fmt.Sprint(in), func(t *testing.T) {
			r := r.in(t)
			trap := filepath.Join(t.TempDir(), "ran")
			clean := take(t, r.dir)
			for _, tt := range rows {
				if tt.in == in {
					tt.lay(r, "touch '"+trap+"'; cat")
				}
			}
			if err := os.Remove(trap); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			hostile := take(t, r.dir)
			r.write("a.txt", "two\n")
			r.write("b.txt", "new\n")
			if got, want := changes(t, hostile), "update >a.txt\nadd >b.txt\n"; got != want {
				t.Errorf("changes %q, want %q", got, want)
			}
			if got, want := changes(t, clean), "add >b.txt\n"; !strings.Contains(got, want) {
				t.Errorf("changes %q, want %q among them", got, want)
			}

			info := git.Head(t.Context(), r.dir, git.Scratch{Dir: t.TempDir()})
			got, err := uncommitted(t, r.dir, git.Scratch{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if info == nil || info.CommitHash == "" || info.Branch != "main" || info.RepositoryURL == "" {
				t.Errorf("%+v", info)
			}
			const want = "diff --git a/a.txt b/a.txt\nindex 5626abf..f719efd 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n" +
				"diff --git a/b.txt b/b.txt\nnew file mode 100644\nindex 0000000..3e75765\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n"
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error("(-want +got)\n" + diff)
			}
			if _, err := os.Stat(trap); err == nil {
				t.Error("a program of the repository was run")
			}
		})
	}
}

// TestSpecialGitFiles checks that special files in place of git's files block nothing.
func TestSpecialGitFiles(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	r.push()
	r.write(".git/info/attributes", "")
	for _, name := range []string{"commondir", "HEAD", "config", "packed-refs", "index", "refs/heads/main", "shallow", "info/exclude", "objects/info/alternates"} {
		for kind, lay := range map[string]func(string) error{
			"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"zero": func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				path, saved := filepath.Join(r.dir, ".git", name), filepath.Join(t.TempDir(), "saved")
				if err := os.Rename(path, saved); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := os.Remove(path); err != nil {
						t.Error(err)
					}
					if err := os.Rename(saved, path); err != nil && !os.IsNotExist(err) {
						t.Error(err)
					}
				})
				if err := lay(path); err != nil {
					t.Fatal(err)
				}
				// For git, HEAD and commondir make a repository.
				if info := git.Head(t.Context(), r.dir, git.Scratch{Dir: t.TempDir()}); info == nil && name != "HEAD" && name != "commondir" {
					t.Error("there is no repository")
				}
				if _, err := uncommitted(t, r.dir, git.Scratch{Dir: t.TempDir()}); err != nil && strings.Contains(err.Error(), "deadline") {
					t.Error(err)
				}
				s, err := git.Look(t.Context(), r.dir, &git.Options{Scratch: git.Scratch{Dir: t.TempDir()}})
				if err == nil {
					err = s.Remove()
				}
				if err != nil && strings.Contains(err.Error(), "deadline") {
					t.Error(err)
				}
			})
		}
	}
}

func TestRead(t *testing.T) {
	r := newRepo(t)
	scratch := filepath.Join(t.TempDir(), "a", "b")
	read := func(dir string) *protocol.GitInfo { return git.Head(t.Context(), dir, git.Scratch{Dir: scratch}) }
	check := func(name, dir string, want *protocol.GitInfo) {
		t.Helper()
		if diff := cmp.Diff(want, read(dir)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	check("no repository", filepath.Dir(r.dir), nil)
	check("no commit", r.dir, &protocol.GitInfo{})
	r.write("sub/a.txt", "one\n")
	sha := r.commit("first")
	r.push()
	check("a branch", r.dir, &protocol.GitInfo{CommitHash: sha, Branch: "main", RepositoryURL: "../o.git"})
	check("a folder below", filepath.Join(r.dir, "sub"), &protocol.GitInfo{CommitHash: sha, Branch: "main", RepositoryURL: "../o.git"})
	r.git("worktree", "add", "-q", "-b", "other", "../tree")
	check("a worktree", filepath.Join(r.dir, "..", "tree"), &protocol.GitInfo{CommitHash: sha, Branch: "other", RepositoryURL: "../o.git"})
	r.git("pack-refs", "--all")
	check("packed", r.dir, &protocol.GitInfo{CommitHash: sha, Branch: "main", RepositoryURL: "../o.git"})
	r.git("checkout", "-q", "--detach")
	check("detached", r.dir, &protocol.GitInfo{CommitHash: sha, RepositoryURL: "../o.git"})
	r.git("config", "--add", "remote.origin.url", "../second.git") // to which pushes go, too
	check("two URLs", r.dir, &protocol.GitInfo{CommitHash: sha, RepositoryURL: "../o.git"})
	r.git("config", "a.b", "c # d") // git quotes it, so that git must parse the file
	check("two URLs and a quoted value", r.dir, &protocol.GitInfo{CommitHash: sha, RepositoryURL: "../o.git"})
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestDiffOfOtherForms compares repositories with SHA-256, and with an odd name.
func TestDiffOfOtherForms(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	r.push()
	t.Run("sha256", func(t *testing.T) {
		r := newRepo(t)
		for _, dir := range []string{".git", "../o.git"} {
			if err := os.RemoveAll(filepath.Join(r.dir, dir)); err != nil {
				t.Fatal(err)
			}
		}
		r.git("init", "-q", "-b", "main", "--template=", "--object-format=sha256")
		r.git("init", "-q", "--bare", "--template=", "--object-format=sha256", "../o.git")
		r.write("a.txt", "one\n")
		r.commit("first")
		r.push()
		r.write("a.txt", "two\n")
		diff, err := uncommitted(t, r.dir, git.Scratch{Dir: t.TempDir()})
		if err != nil || !strings.Contains(diff, "-one\n+two\n") {
			t.Errorf("%q, %v", diff, err)
		}
	})
	t.Run("a name that needs quotes", func(t *testing.T) {
		r := r.in(t)
		odd := filepath.Join(filepath.Dir(r.dir), "#\"o\nd\\d:ü")
		if err := os.Rename(r.dir, odd); err != nil {
			t.Fatal(err)
		}
		r.dir = odd
		r.write("a.txt", "two\n")
		diff, err := uncommitted(t, r.dir, git.Scratch{Dir: t.TempDir()})
		if err != nil || !strings.Contains(diff, "-one\n+two\n") {
			t.Errorf("%q, %v", diff, err)
		}
	})
}

// TestSpecialUserConfig reads a repository while the user's own configuration is not a
// regular file.
func TestSpecialUserConfig(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	r.push()
	r.write("a.txt", "two\n")
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/zero")
	if diff, err := uncommitted(t, r.dir, git.Scratch{Dir: t.TempDir()}); err != nil || !strings.Contains(diff, "+two") {
		t.Errorf("%q, %v", diff, err)
	}
}
