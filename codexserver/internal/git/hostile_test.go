//go:build unix

package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// traps are settings of git that name programs, or lead to other configuration.
var traps = []string{
	"core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy", "core.alternateRefsCommand",
	"diff.external", "diff.evil.command", "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
	"filter.EviL.clean", "merge.evil.driver", "gpg.program", "gpg.ssh.program", "credential.helper", "sequence.editor",
	"pager.diff", "pager.rev-list", "remote.origin.uploadpack", "remote.origin.vcs", "uploadpack.packObjectsHook",
}

// TestHostileRepository checks that the repository's configuration runs no program and does not change the result.
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
					r.program(dir+"/"+name, script)
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
		{"another form of diffs, and attributes", 1, func(r *fixture, _ string) {
			r.configure(all("true", "diff.noprefix", "diff.relative", "diff.suppressBlankEmpty")...)
			r.configure(setting{"color.ui", "always"}, setting{"diff.context", "0"}, setting{"diff.interHunkContext", "9"})
			r.write(".git/info/attributes", "* filter=evil diff=evil merge=evil\n")
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
			dot := filepath.Join(r.dir, ".git")
			must.OK(r.t, os.Rename(dot, filepath.Join(r.dir, "..", "moved")), os.Symlink("../moved", dot))
		}},
		{"its own git", 2, func(r *fixture, script string) {
			r.program("node_modules/.bin/git", script)
			r.write(".git/info/exclude", "node_modules\n")
			r.t.Setenv("PATH", filepath.Join(r.dir, "node_modules/.bin")+":"+filepath.Join(r.dir, "..", "w", "node_modules", ".bin")+":"+os.Getenv("PATH"))
		}},
		{"lists of what is ignored and attributes that wait, a user's configuration without an end", 2, func(r *fixture, _ string) {
			r.t.Setenv("GIT_CONFIG_GLOBAL", "/dev/zero")
			pipe := filepath.Join(filepath.Dir(r.dir), "pipe")
			must.OK(r.t, syscall.Mkfifo(pipe, 0o600))
			r.configure(all(pipe, "core.attributesFile", "core.excludesFile", "include.path")...)
		}},
		{"a home in it", 3, func(r *fixture, script string) {
			r.write("home/.gitconfig", "[core]\n\tfsmonitor = \""+script+"\"\n[diff]\n\tnoprefix = true\n[core]\n\texcludesFile = /dev/null\n[filter \"evil\"]\n\tclean = \""+script+"\"\n")
			r.write(".git/info/exclude", "home\n")
			must.OK(r.t, os.Unsetenv("GIT_CONFIG_GLOBAL"))
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
	r.write("a.txt", "\none\n")
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
					// In the sandbox it may write in git's folder alone, where take finds it.
					tt.lay(r, "touch '"+trap+"' ${GIT_DIR:+$GIT_DIR/ran}; cat")
				}
			}
			if err := os.Remove(trap); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			hostile := take(t, r.dir)
			r.write("a.txt", "\ntwo\n")
			r.write("b.txt", "new\n")
			must.Equal(t, "the changes", "update >a.txt\nadd >b.txt +\n", changes(t, hostile))
			if got, want := changes(t, clean), "add >b.txt +\n"; !strings.Contains(got, want) {
				t.Errorf("changes %q, want %q among them", got, want)
			}

			info := git.Head(t.Context(), r.dir, scratch(t))
			if info == nil || info.CommitHash == "" || info.Branch != "main" || info.RepositoryURL == "" {
				t.Errorf("%+v", info)
			}
			const changed = "diff --git a/a.txt b/a.txt\nindex a71c015..8ab457a 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n \n-one\n+two\n"
			const added = "diff --git a/b.txt b/b.txt\nnew file mode 100644\nindex 0000000..3e75765\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n"
			for target, want := range map[protocol.ReviewTarget]string{protocol.ReviewUncommitted: changed + added, protocol.ReviewBase: changed, protocol.ReviewCommit: "*"} {
				c := must.Get(r.review(target, "main"))(t)
				if d := cmp.Diff(want, c.Diff); d != "" && want != "*" {
					t.Errorf("%s (-want +got)\n%s", target, d)
				}
			}
			if _, err := os.Stat(trap); err == nil {
				t.Error("a program of the repository was run")
			}
		})
	}
}

// TestSpecialGitFiles checks that special files in place of git's files block nothing, and that the reason names the file.
func TestSpecialGitFiles(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	r.push()
	r.git("branch", "third")
	r.git("worktree", "add", "-q", "../third", "third")
	r.write(".git/info/attributes", "")
	r.write(".git/config.worktree", "")
	for _, name := range []string{
		"commondir", "HEAD", "config", "config.worktree", "packed-refs", "shallow", "index",
		"refs/heads/main", "refs/heads/third", "refs/heads/a/b", "refs/remotes/origin/main", "refs/tags/t", "info/exclude", "info/attributes", "info/grafts",
		"objects/info/alternates", "objects/info/commit-graph", "objects/info/commit-graphs/commit-graph-chain", "objects/pack/multi-pack-index", "objects/pack/pack-1.idx",
		"worktrees/third/HEAD", "worktrees/third/commondir", "worktrees/third/gitdir",
	} {
		for kind, lay := range map[string]func(string) error{
			"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"zero": func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				path, saved := filepath.Join(r.dir, ".git", name), filepath.Join(t.TempDir(), "saved")
				must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
				if err := os.Rename(path, saved); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					must.Check(t, os.Remove(path))
					if err := os.Rename(saved, path); err != nil && !os.IsNotExist(err) {
						t.Error(err)
					}
				})
				must.OK(t, lay(path))
				begun := time.Now()
				// For git, HEAD and commondir make a repository.
				if info := git.Head(t.Context(), r.dir, scratch(t)); info == nil && name != "HEAD" && name != "commondir" {
					t.Error("there is no repository")
				}
				ask := map[string]func() error{
					"a worktree": func() error { _, _, err := r.in(t).worktree(t.Context(), r.dir); return err },
					"a review":   func() error { _, err := r.in(t).review(protocol.ReviewUncommitted, ""); return err },
					"a look": func() error {
						r := r.in(t)
						r.write("new", "") // so that git runs
						s, err := git.Look(t.Context(), r.dir, &git.Options{Scratch: scratch(t)})
						if err == nil {
							err = s.Remove()
						}
						return err
					},
				}
				for what, ask := range ask {
					err := ask()
					named := err != nil && strings.Contains(err.Error(), path+" is ")
					if odd := name == "HEAD" || name == "commondir"; what == "a worktree" && err == nil || err != nil && !odd && !named {
						t.Errorf("%s: %v, want %s in it", what, err, path)
					}
				}
				if took := time.Since(begun); took > 45*time.Second { // git's limit is longer
					t.Errorf("it took %v", took)
				}
			})
		}
	}
}

// TestSpecialWorkFiles has special files that git would read in each folder, before the look and after it.
func TestSpecialWorkFiles(t *testing.T) {
	first := newRepo(t)
	first.write("sub/a", "one\n")
	first.write("sub/.gitattributes", "* text\n")
	first.commit("first")
	names := []string{".gitattributes", "sub/.gitattributes", "sub/.gitignore", "new/.gitattributes"}
	for i, r := range first.copies(t, len(names)) {
		t.Run(names[i], func(t *testing.T) {
			r := r.in(t)
			path := filepath.Join(r.dir, names[i])
			look := func() (*git.Before, error) { return git.Look(t.Context(), r.dir, &git.Options{Scratch: scratch(t)}) }
			before := must.Get(look())(t)
			r.write("new/x", "x")
			r.write("sub/a", "two\n")
			_ = os.Remove(path)
			must.OK(t, syscall.Mkfifo(path, 0o600))
			begun := time.Now()
			_, _, err := before.Compare(t.Context(), 1<<20)
			must.Fail(t, "Compare", path, err)
			if _, err = look(); names[i] == "new/.gitattributes" { // which git reads once it stores new/x
				must.OK(t, err)
			} else {
				must.Fail(t, "Look", path, err)
			}
			if took := time.Since(begun); took > 45*time.Second {
				t.Errorf("it took %v", took)
			}
			must.Check(t, before.Remove())
		})
	}
}
