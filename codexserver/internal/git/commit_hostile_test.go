//go:build unix

package git_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestHostileCommit checks that no program runs that a repository, a worktree or the user configures, when the work in the
// worktree is committed. Git starts each of these with its own git commit.
func TestHostileCommit(t *testing.T) {
	first := newRepo(t)
	first.write("a.txt", "one\n")
	first.write("b", "two\n")
	first.commit("first")
	hooks := []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction",
		"post-index-change", "fsmonitor-watchman", "post-rewrite"}
	rows := []struct {
		name string
		lay  func(r *fixture, w *git.Worktree, script string)
		left string
		tame bool // this git does not start it
	}{
		{"hooks", func(r *fixture, _ *git.Worktree, script string) {
			for _, name := range hooks {
				r.program(".git/hooks/"+name, script)
			}
		}, "", false},
		{"hooks elsewhere", func(r *fixture, w *git.Worktree, script string) {
			for _, name := range hooks {
				(&fixture{r.t, w.Path}).program("hooks/"+name, script)
			}
			r.configure(setting{"core.hooksPath", filepath.Join(w.Path, "hooks")})
		}, "", false},
		{"hooks of the configuration", func(r *fixture, _ *git.Worktree, script string) {
			for _, event := range hooks {
				r.configure(setting{"hook.evil.command", script}, setting{"hook.evil.event", event})
			}
		}, "", true},
		{"signing, monitors, programs and aliases", func(r *fixture, _ *git.Worktree, script string) {
			r.program(".git/sign", script)
			r.configure(all(script, traps...)...)
			r.configure(setting{"commit.gpgSign", "true"}, setting{"gpg.program", filepath.Join(r.dir, ".git/sign")})
			for _, command := range []string{"status", "ls-files", "update-index", "read-tree", "write-tree", "commit-tree", "update-ref", "check-attr", "rev-parse"} {
				r.configure(setting{"alias." + command, "!" + script})
			}
		}, "", false},
		{"the configuration of the worktree", func(r *fixture, w *git.Worktree, script string) {
			r.program(".git/sign", script)
			r.configure(setting{"extensions.worktreeConfig", "true"}, setting{"core.repositoryFormatVersion", "1"})
			configure(r.t, filepath.Join(w.GitDir, "config.worktree"), setting{"commit.gpgSign", "true"},
				setting{"gpg.program", filepath.Join(r.dir, ".git/sign")}, setting{"core.fsmonitor", script})
		}, "", false},
		{"the configuration of the user", func(r *fixture, w *git.Worktree, script string) {
			r.program(".git/sign", script)
			file := filepath.Join(r.dir, "../gitconfig")
			configure(r.t, file, setting{"commit.gpgSign", "true"}, setting{"gpg.program", filepath.Join(r.dir, ".git/sign")},
				setting{"core.fsmonitor", script}, setting{"filter.evil.clean", script})
			r.t.Setenv("GIT_CONFIG_GLOBAL", file)
		}, "", false},
		{"filters, by attributes of the worktree and of the repository", func(r *fixture, w *git.Worktree, script string) {
			r.configure(setting{"filter.evil.clean", script}, setting{"filter.evil.process", script}, setting{"filter.evil.required", "true"})
			r.write(".git/info/attributes", "*.txt filter=evil\n")
			(&fixture{r.t, w.Path}).write(".gitattributes", "b diff=evil merge=evil\n")
		}, "a.txt: a filter of git's converts it, which does not run here", false},
		{"a filter that the worktree's .gitattributes switches off", func(r *fixture, w *git.Worktree, script string) {
			r.configure(setting{"filter.evil.clean", script}, setting{"core.attributesFile", filepath.Join(r.dir, ".git/more")})
			r.write(".git/more", "* filter=evil\n")
			(&fixture{r.t, w.Path}).write(".gitattributes", "b -filter\n.gitattributes -filter\n")
		}, "a.txt: a filter of git's converts it, which does not run here", false},
		{"its own git", func(r *fixture, w *git.Worktree, script string) {
			(&fixture{r.t, w.Path}).program("bin/git", script)
			r.t.Setenv("PATH", filepath.Join(w.Path, "bin")+":"+os.Getenv("PATH"))
		}, "", false},
		{"variables", func(r *fixture, w *git.Worktree, script string) {
			for name, value := range map[string]string{
				"GIT_EXTERNAL_DIFF": script, "GIT_INDEX_FILE": "/dev/null", "GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/",
				"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": script,
				"GIT_OBJECT_DIRECTORY": "/nowhere", "GIT_NAMESPACE": "x", "GIT_EXEC_PATH": "/nowhere", "GIT_COMMON_DIR": "/nowhere",
			} {
				r.t.Setenv(name, value)
			}
		}, "", true},
	}
	for i, r := range first.copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			r := r.in(t)
			w, _, err := r.worktree(t.Context(), r.dir)
			must.OK(t, err)
			c := &committing{fixture: r, tree: &fixture{t, w.Path}, w: w}
			c.tree.write("a.txt", "changed\n")
			c.tree.write("b", "changed\n")
			before, path := c.state(), os.Getenv("PATH")
			trap := filepath.Join(r.dir, ".git", "ran") // where git may write, so that only what is not started leaves no trace
			tt.lay(r, w, "touch '"+trap+"'; cat")
			done, err := w.Commit(t.Context(), git.CommitOptions{Prompt: "Do it"})
			must.OK(t, err)
			if exists(trap) {
				t.Error("a program ran")
			}
			if !tt.tame {
				_, _ = c.tree.try("commit", "-qam", "control")
				if err := os.Remove(trap); err != nil {
					t.Errorf("the trap does not work: %v", err)
				}
				c.tree.try("-c", "core.hooksPath=/dev/null", "update-ref", "refs/heads/"+w.Branch, done.Commit)
			}
			for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_EXEC_PATH", "GIT_COMMON_DIR", "GIT_CONFIG_GLOBAL"} {
				must.OK(t, os.Unsetenv(name))
			}
			t.Setenv("PATH", path)
			must.OK(t, os.RemoveAll(filepath.Join(r.dir, ".git/hooks")), os.WriteFile(filepath.Join(r.dir, ".git/config"), []byte("[core]\n\trepositoryformatversion = 0\n"), 0o600))
			must.Equal(t, "the repository", before, c.state())
			files := c.git("show", "--name-only", "--format=", done.Commit)
			want, left := true, ""
			for _, g := range done.Left {
				left, want = g.Path+": "+g.Why, g.Path != "a.txt"
			}
			must.Equal(t, "what is left out", tt.left, left)
			if strings.Contains(files, "a.txt") != want || !strings.Contains(files, "b") {
				t.Errorf("the commit has %q", files)
			}
			if raw := c.git("cat-file", "commit", done.Commit); strings.Contains(raw, "gpgsig") {
				t.Errorf("the commit is %s", raw)
			}
		})
	}
}

// TestCommitWaits checks that a pipe in the place of a file that git reads does not hold the commit.
func TestCommitWaits(t *testing.T) {
	r := newRepo(t)
	r.write("a", "one\n")
	r.commit("x")
	w, _, err := r.worktree(t.Context(), r.dir)
	must.OK(t, err)
	(&fixture{t, w.Path}).shell("mkfifo .gitattributes; echo x >a")
	if done, err := w.Commit(t.Context(), git.CommitOptions{}); err == nil || !strings.Contains(err.Error(), ".gitattributes is a named pipe") {
		t.Errorf("%+v, %v", done, err)
	}
	must.OK(t, os.Remove(filepath.Join(w.Path, ".gitattributes")))
	if done, err := w.Commit(t.Context(), git.CommitOptions{}); err != nil || done.Commit == "" {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestCommitAtOnce has several servers commit the work of a worktree at once: it is committed once, and each has the commit.
func TestCommitAtOnce(t *testing.T) {
	r := newRepo(t)
	r.write("a", "one\n")
	r.commit("x")
	w, trees, err := r.worktree(t.Context(), r.dir)
	must.OK(t, err)
	(&fixture{t, w.Path}).write("a", "two\n")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			w, err := scratch(t).FindWorktree(trees, w.Path)
			var done git.Committed
			if err == nil {
				done, err = w.Commit(t.Context(), git.CommitOptions{})
			}
			if err != nil || done.Commit == "" {
				t.Errorf("%+v, %v", done, err)
			}
		})
	}
	all.Wait()
	must.Equal(t, "how many commits", "2", r.git("rev-list", "--count", w.Branch))
}

// TestMend finishes commits that a killed server has begun, by what it has left, and none that another server is at.
func TestMend(t *testing.T) {
	first := newRepo(t)
	first.write("a", "one\n")
	first.write(".env", "x\n")
	first.commit("first")
	denied := func(string) func(string) error {
		return func(path string) error {
			if filepath.Base(path) == ".env" {
				return os.ErrPermission
			}
			return nil
		}
	}
	rows := []struct {
		name, note string
		lay        func(c *committing)
		want       string // the subject of the last commit
		err        string
		gone       bool // its record is, too
	}{
		{name: "nothing was begun", lay: func(c *committing) { must.OK(c.t, os.Remove(c.w.Path+".commit")) }, want: "first"},
		{name: "the beginning", note: "Do it", want: "Do it"},
		{name: "before it was noted what is committed", want: "Work of a conversation"},
		{name: "the index is written", note: "Do it", lay: func(c *committing) { c.tree.git("add", "a") }, want: "Do it"},
		{name: "the index is about to take its place", note: "Do it", lay: func(c *committing) {
			must.OK(c.t, os.WriteFile(filepath.Join(c.w.GitDir, "index.codex-mcp"), []byte("DIRC"), 0o600))
			must.OK(c.t, os.Link(filepath.Join(c.w.GitDir, "index.codex-mcp"), filepath.Join(c.w.GitDir, "index.lock")))
		}, want: "Do it"},
		{name: "another git has the index", note: "Do it", lay: func(c *committing) {
			must.OK(c.t, os.WriteFile(filepath.Join(c.w.GitDir, "index.codex-mcp"), []byte("DIRC"), 0o600))
			must.OK(c.t, os.WriteFile(filepath.Join(c.w.GitDir, "index.lock"), nil, 0o600))
		}, want: "first", err: "another git holds"},
		{name: "another branch", note: "Do it", lay: func(c *committing) { c.tree.git("checkout", "-q", "-b", "mine") }, want: "first", err: "is not checked out"},
		{name: "another server is at it", note: "Do it", lay: func(c *committing) {
			f := must.Get(os.Open(c.w.Path + ".commit"))(c.t)
			must.OK(c.t, safefile.Lock(f))
			c.t.(*testing.T).Cleanup(func() { f.Close() })
		}, want: "first"},
		{name: "the worktree is gone", note: "Do it", lay: func(c *committing) { c.git("worktree", "remove", "--force", c.w.Path) }, want: "first", gone: true},
	}
	for i, r := range first.copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			r := r.in(t)
			w, trees, err := r.worktree(t.Context(), r.dir)
			must.OK(t, err, w.Owner("one thread"))
			c := &committing{fixture: r, tree: &fixture{t, w.Path}, w: w}
			c.tree.write("a", "two\n")
			c.tree.write(".env", "SECRET\n")
			must.OK(t, os.WriteFile(w.Path+".commit", []byte(tt.note), 0o600))
			if tt.lay != nil {
				tt.lay(c)
			}
			before := c.state()
			err = scratch(t).Mend(t.Context(), trees, denied)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
			must.Equal(t, "the repository", before, c.state())
			must.Equal(t, "the subject", tt.want, c.git("log", "-1", "--format=%s", w.Branch))
			must.Equal(t, "the record is gone", tt.gone, !exists(w.Path+".json"))
			must.Equal(t, "the secret is committed", "x", c.git("cat-file", "blob", w.Branch+":.env"))
			must.Equal(t, "a new index is left", false, exists(filepath.Join(w.GitDir, "index.codex-mcp")) || tt.err == "" && exists(filepath.Join(w.GitDir, "index.lock")))
			if tt.want == "Do it" {
				must.Equal(t, "the status", "M .env", c.tree.git("status", "--porcelain"))
				must.Equal(t, "the trailer", "one thread", c.git("log", "-1", "--format=%(trailers:key=Codex-Thread,valueonly,separator=%x2c)", w.Branch))
			}
		})
	}
}

// TestCommitKilled kills processes that commit, at several moments. What they have left is mended, or the next commit has it.
func TestCommitKilled(t *testing.T) {
	if dir := os.Getenv("COMMITS_IN"); dir != "" {
		w := must.Get(scratch(t).FindWorktree(filepath.Dir(dir), dir))(t)
		_, err := w.Commit(t.Context(), git.CommitOptions{Prompt: "Do it"})
		must.OK(t, err)
		return
	}
	r := newRepo(t)
	r.write("a", "one\n")
	r.commit("first")
	w, trees, err := r.worktree(t.Context(), r.dir)
	must.OK(t, err)
	c := &committing{fixture: r, tree: &fixture{t, w.Path}, w: w}
	before := c.state()
	for i := range 8 {
		c.tree.write("a", strings.Repeat("more\n", i+2))
		ctx, kill := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Millisecond+time.Millisecond)
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCommitKilled$")
		cmd.Env = append(os.Environ(), "COMMITS_IN="+w.Path)
		_ = cmd.Run()
		kill()
		mended := scratch(t).Mend(t.Context(), trees, func(string) func(string) error { return nil })
		done, err := w.Commit(t.Context(), git.CommitOptions{Prompt: "Do it"})
		if err != nil {
			t.Fatalf("%v, and then %v", mended, err)
		}
		must.Equal(t, "the tip", done.Commit, r.git("rev-parse", w.Branch))
		must.Equal(t, "the file", strings.Repeat("more\n", i+2), r.git("cat-file", "blob", w.Branch+":a")+"\n")
		must.Equal(t, "the status", "", c.tree.git("status", "--porcelain"))
		must.Equal(t, "the repository", before, c.state())
	}
	must.Equal(t, "the subjects", strings.Repeat("Do it\n", 8)+"first", r.git("log", "--format=%s", w.Branch))
	if out, err := r.try("fsck", "--full", "--no-progress", "--no-dangling"); err != nil || out != "" {
		t.Errorf("fsck: %s, %v", out, err)
	}
}
