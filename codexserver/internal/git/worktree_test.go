//go:build unix

package git_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// worktree makes a worktree of the repository, and returns it with the folder of all of them.
func (r *fixture) worktree(ctx context.Context, dir string) (w *git.Worktree, trees string, err error) {
	home := r.t.TempDir()
	trees = git.Worktrees(home)
	programs := &box.Programs{Temporary: []string{}}
	programs.Add(filepath.Join(r.dir, "../writable"))
	w, err = git.Scratch{Dir: filepath.Join(home, "tmp"), Programs: programs}.AddWorktree(ctx, dir, trees)
	return w, trees, err
}

// left returns what is in the folder of all worktrees.
func left(t *testing.T, trees string) []os.DirEntry {
	entries, err := os.ReadDir(trees)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	return entries
}

// TestAddWorktree makes worktrees of repositories of several forms.
func TestAddWorktree(t *testing.T) {
	first := newRepo(t)
	first.write("a", "one\n")
	first.write("sub/b", "b\n")
	first.commit("x")
	rows := []struct {
		name string
		lay  func(r *fixture) (dir string)
		sub  string // the folder of the worktree
	}{
		{"a repository with uncommitted work", func(r *fixture) string { r.write("a", "two\n"); return r.dir }, ""},
		{"a folder in it", func(r *fixture) string { return filepath.Join(r.dir, "sub") }, "sub"},
		{"a folder that HEAD does not have", func(r *fixture) string { r.write("new/x", "x"); return filepath.Join(r.dir, "new") }, ""},
		{"a folder that is a link in HEAD", func(r *fixture) string {
			must.OK(r.t, os.Symlink("/", filepath.Join(r.dir, "link")))
			r.commit("link")
			must.OK(r.t, os.Remove(filepath.Join(r.dir, "link")))
			r.write("link/x", "x")
			return filepath.Join(r.dir, "link")
		}, ""},
		{"a detached HEAD", func(r *fixture) string { r.git("checkout", "-q", "--detach"); return r.dir }, ""},
		{"a worktree", func(r *fixture) string { r.git("worktree", "add", "-q", "../third"); return r.dir + "/../third" }, ""},
		{"a submodule", func(r *fixture) string {
			r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", r.dir, "module")
			return filepath.Join(r.dir, "module")
		}, ""},
		{"with submodules, which stay empty", func(r *fixture) string {
			r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", r.dir, "module")
			r.commit("module")
			r.configure(setting{"submodule.recurse", "true"})
			return r.dir
		}, ""},
		{"a name that needs quotes, behind a link", func(r *fixture) string {
			r.git("clone", "-q", "--shared", ".", "../#\"o d\\d:ü")
			must.OK(r.t, os.Symlink("#\"o d\\d:ü", filepath.Join(r.dir, "../link")))
			return filepath.Join(r.dir, "../link")
		}, ""},
	}
	for i, r := range first.copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			r := r.in(t)
			dir := tt.lay(r)
			before, _ := (&fixture{t, dir}).try("status", "--porcelain", "--branch")
			w, trees, err := r.worktree(t.Context(), dir)
			must.OK(t, err)
			if a, err := os.ReadFile(filepath.Join(w.Path, "a")); err != nil || string(a) != "one\n" {
				t.Errorf("a is %q, %v", a, err)
			}
			must.Equal(t, "the folder", filepath.Join(w.Path, tt.sub), w.Cwd)
			tree := &fixture{t, w.Path}
			must.Equal(t, "the state", "## "+w.Branch, tree.git("status", "--porcelain", "--branch"))
			must.Equal(t, "HEAD", (&fixture{t, dir}).git("rev-parse", "HEAD"), tree.git("rev-parse", "HEAD"))
			if after, _ := (&fixture{t, dir}).try("status", "--porcelain", "--branch"); after != before {
				t.Errorf("the repository has\n%s\nwant\n%s", after, before)
			}
			must.Check(t, w.Remove(t.Context()))
			if rest := left(t, trees); len(rest) > 0 {
				t.Errorf("left: %v", rest)
			}
			must.Equal(t, "the branches that are left", "", (&fixture{t, dir}).git("branch", "--list", "codex/*"))
		})
	}
}

// TestWorktreeRefused checks that there is no worktree of a repository that leads elsewhere, or has
// no commit, and that nothing is left of the attempt.
func TestWorktreeRefused(t *testing.T) {
	first := newRepo(t)
	first.write("a", "one\n")
	first.commit("x")
	first.git("clone", "-q", ".", "../other")
	dotGit := func(r *fixture, text string) string {
		must.OK(r.t, os.RemoveAll(filepath.Join(r.dir, ".git")))
		r.write(".git", text)
		return r.dir
	}
	rows := []struct {
		name, want string
		lay        func(r *fixture) (dir string)
	}{
		{"no repository", "is not in the working tree of a git repository", func(r *fixture) string { return filepath.Dir(r.dir) }},
		{"no folder", "no such file", func(r *fixture) string { return r.dir + "/no" }},
		{"no commit", "has no commit yet", func(r *fixture) string { r.git("checkout", "-q", "--orphan", "new"); return r.dir }},
		{"a HEAD that is no commit", "git worktree: ", func(r *fixture) string {
			r.write(".git/HEAD", r.git("rev-parse", "HEAD^{tree}")+"\n")
			return r.dir
		}},
		{"a bare repository", "is not in the working tree of a git repository", func(r *fixture) string {
			r.git("clone", "-q", "--bare", ".", "../bare.git")
			return filepath.Join(r.dir, "../bare.git")
		}},
		{"a bare repository with files beside", "is bare", func(r *fixture) string { r.configure(setting{"core.bare", "true"}); return r.dir }},
		{"a branch that exists already", "refs/heads/codex' exists", func(r *fixture) string { r.git("branch", "codex"); return r.dir }},
		{"a .git that is another's", "does not name it", func(r *fixture) string { return dotGit(r, "gitdir: ../other/.git\n") }},
		{"a .git that is a link", "does not name it", func(r *fixture) string {
			must.OK(r.t, os.RemoveAll(filepath.Join(r.dir, ".git")), os.Symlink("../other/.git", filepath.Join(r.dir, ".git")))
			return r.dir
		}},
		{"a .git that is another worktree's", "is not the git folder of", func(r *fixture) string {
			r.git("-C", "../other", "worktree", "add", "-q", "../third")
			return dotGit(r, "gitdir: ../other/.git/worktrees/third\n")
		}},
		{"a folder of git that leads elsewhere", "is not the git folder of", func(r *fixture) string {
			r.write(".git/commondir", "../../other/.git\n")
			return r.dir
		}},
		{"a full disk", "git reset: ", func(r *fixture) string { // as git sees it, for which an object is missing
			object := r.git("rev-parse", "HEAD:a")
			must.OK(r.t, os.Remove(filepath.Join(r.dir, ".git/objects", object[:2], object[2:])))
			return r.dir
		}},
	}
	for i, r := range first.copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			r := r.in(t)
			dir := tt.lay(r)
			w, trees, err := r.worktree(t.Context(), dir)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, %v", w, err)
			}
			if rest := left(t, trees); len(rest) > 0 {
				t.Errorf("left: %v", rest)
			}
			for _, dir := range []string{r.dir, filepath.Join(r.dir, "../other")} {
				if branches, err := (&fixture{t, dir}).try("branch", "--list", "codex/*"); err == nil && branches != "" {
					t.Errorf("left: %s", branches)
				}
			}
		})
	}
}

// TestHostileWorktree checks that no program runs that a repository configures, when a worktree of it
// is made and removed. Git starts each of these with its own git worktree add.
func TestHostileWorktree(t *testing.T) {
	first := newRepo(t)
	first.write("a.txt", "one\n")
	first.write("b.txt", "two\n")
	first.write(".gitattributes", "a.txt filter=evil\nb.txt filter=a=b\n")
	first.commit("first")
	filters := func(script string) []setting {
		return append(all(script, "filter.evil.smudge", "filter.a=b.smudge", "core.fsmonitor"), all("true", "filter.evil.required", "filter.a=b.required")...)
	}
	// user lets the filters count as the user's configuration, by a file that commands can write.
	user := func(file string, lay func(r *fixture, path string)) func(*fixture, string) {
		return func(r *fixture, script string) {
			r.write(file, "")
			path := filepath.Join(r.dir, file)
			configure(r.t, path, filters(script)...)
			r.write("../home/.config/x", "")
			r.t.Setenv("HOME", filepath.Join(r.dir, "../home"))
			r.t.Setenv("XDG_CONFIG_HOME", "")
			must.OK(r.t, os.Unsetenv("GIT_CONFIG_GLOBAL"))
			lay(r, path)
		}
	}
	rows := []struct {
		name string
		lay  func(r *fixture, script string)
		tame bool // this git does not start it
	}{
		{"the user's file includes one of the working tree", user("evil.inc", func(r *fixture, path string) {
			configure(r.t, filepath.Join(r.dir, "../home/.gitconfig"), setting{"include.path", path})
		}), false},
		{"the user's file is in a writable folder", user("../writable/git/config", func(r *fixture, _ string) {
			r.t.Setenv("XDG_CONFIG_HOME", filepath.Join(r.dir, "../writable"))
		}), false},
		{"the user's file is a link to a writable folder", user("../writable/evil", func(r *fixture, path string) {
			must.OK(r.t, os.Symlink(path, filepath.Join(r.dir, "../home/.gitconfig")))
		}), false},
		{"hooks", func(r *fixture, script string) {
			for _, name := range []string{"post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"} {
				r.program(".git/hooks/"+name, script)
			}
		}, false},
		{"hooks of the configuration", func(r *fixture, script string) {
			for _, event := range []string{"post-checkout", "post-index-change", "reference-transaction"} {
				r.configure(setting{"hook.evil.command", script}, setting{"hook.evil.event", event})
			}
		}, true},
		{"filters", func(r *fixture, script string) { r.configure(filters(script)...) }, false},
		{"a filter that is a process", func(r *fixture, script string) {
			r.configure(setting{"filter.evil.process", script}, setting{"filter.a=b.process", script})
		}, false},
		{"a file that is included on a condition, which only the worktree fulfils", func(r *fixture, script string) {
			configure(r.t, filepath.Join(r.dir, ".git", "more"), filters(script)...)
			r.configure(setting{"includeIf.gitdir:**/worktrees/**.path", "more"})
		}, false},
		{"programs and aliases", func(r *fixture, script string) {
			r.configure(all(script, traps...)...)
			for _, command := range []string{"worktree", "config", "reset", "branch", "checkout"} {
				r.configure(setting{"alias." + command, "!" + script})
			}
		}, false},
		{"objects that a remote has promised", func(r *fixture, script string) {
			object := r.git("rev-parse", "HEAD:a.txt")
			must.OK(r.t, os.Remove(filepath.Join(r.dir, ".git/objects", object[:2], object[2:])))
			r.program(".git/remote", strings.TrimSuffix(script, "; cat"))
			remote := strings.ReplaceAll(filepath.Join(r.dir, ".git/remote"), " ", "% ")
			r.configure(setting{"remote.origin.url", "ext::" + remote}, setting{"remote.origin.promisor", "true"},
				setting{"extensions.partialClone", "origin"}, setting{"protocol.ext.allow", "always"}, setting{"core.repositoryFormatVersion", "1"})
		}, false},
		{"its own git", func(r *fixture, script string) {
			r.program("bin/git", script)
			r.t.Setenv("PATH", filepath.Join(r.dir, "bin")+":"+os.Getenv("PATH"))
		}, false},
		{"variables", func(r *fixture, script string) {
			for name, value := range map[string]string{
				"GIT_EXTERNAL_DIFF": script, "GIT_SSH_COMMAND": script, "GIT_EDITOR": script, "GIT_INDEX_FILE": "/dev/null", "GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/",
				"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "filter.evil.smudge", "GIT_CONFIG_VALUE_0": script, "GIT_OBJECT_DIRECTORY": "/nowhere", "GIT_NAMESPACE": "x",
				"GIT_EXEC_PATH": "/nowhere",
			} {
				r.t.Setenv(name, value)
			}
		}, true},
	}
	for i, r := range first.copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			r := r.in(t)
			// Where git may write, so that only what is not started leaves no trace.
			trap := filepath.Join(r.dir, ".git", "ran")
			tt.lay(r, "touch '"+trap+"'; cat")
			if !tt.tame {
				_, _ = r.try("worktree", "add", "-b", "codex/control", "../control") // the script is not a good one
				if err := os.Remove(trap); err != nil {
					t.Errorf("the trap does not work: %v", err)
				}
			}
			w, trees, err := r.worktree(t.Context(), r.dir)
			if err == nil {
				if text, err := os.ReadFile(filepath.Join(w.Path, "a.txt")); err != nil || string(text) != "one\n" {
					t.Errorf("a.txt is %q, %v", text, err)
				}
				err = w.Remove(t.Context())
			}
			if promised := strings.Contains(tt.name, "promised"); promised != (err != nil) {
				t.Error(err)
			}
			if rest := left(t, trees); len(rest) > 0 {
				t.Errorf("left: %v", rest)
			}
			if exists(trap) {
				t.Error("a program of the repository ran")
			}
		})
	}
}

func (r *fixture) program(name, script string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	must.OK(r.t, os.MkdirAll(filepath.Dir(path), 0o755), testenv.WriteProgram(path, []byte("#!/bin/sh\n"+script+"\n")))
}

// TestWorktreeWaits checks that a repository that makes git wait does not hold its caller.
func TestWorktreeWaits(t *testing.T) {
	first := newRepo(t)
	first.write("a", "one\n")
	first.commit("x")
	keys := []string{"core.attributesFile", "include.path"}
	for i, r := range first.copies(t, len(keys)) {
		t.Run(keys[i], func(t *testing.T) {
			r := r.in(t)
			pipe := filepath.Join(r.dir, "../pipe")
			must.OK(t, syscall.Mkfifo(pipe, 0o600))
			r.configure(setting{keys[i], pipe})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, _, err := r.worktree(ctx, r.dir); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
}

// TestVariablesOfGit checks that git gets no variable that it does not need, such as what only the server may know.
func TestVariablesOfGit(t *testing.T) {
	r := newRepo(t)
	r.write("a", "one\n")
	r.commit("x")
	real := must.Get(exec.LookPath("git"))(t)
	bin := t.TempDir()
	seen := filepath.Join(r.dir, ".git", "seen") // where it may write
	(&fixture{t, bin}).program("git", "env >> '"+seen+"'; exec '"+real+"' \"$@\"")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, name := range []string{"OPENAI_API_KEY", "GIT_DIR", "GIT_EXTERNAL_DIFF", "LD_PRELOAD"} {
		t.Setenv(name, "unwanted")
	}
	home := t.TempDir()
	scratch := git.Scratch{Dir: filepath.Join(home, "tmp"), Programs: &box.Programs{Temporary: []string{}}}
	if _, err := scratch.AddWorktree(t.Context(), r.dir, filepath.Join(home, "trees")); err != nil {
		t.Fatal(err)
	}
	known := regexp.MustCompile(`^(PATH|PWD|OLDPWD|SHLVL|_|HOME|XDG_CONFIG_HOME|TMPDIR|LC_ALL|MALLOC_\w+|GIT_\w+)=`)
	text, err := os.ReadFile(seen)
	for line := range strings.Lines(string(text)) {
		if !known.MatchString(line) || strings.Contains(line, "unwanted") {
			t.Errorf("git gets %s", line)
		}
	}
	if err != nil || !strings.Contains(string(text), "GIT_CONFIG_COUNT") {
		t.Errorf("git gets %s, %v", text, err)
	}
}
