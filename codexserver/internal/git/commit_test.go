//go:build unix

package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const (
	lfsPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)

// committing is a repository with a worktree, in which a row of a table works.
type committing struct {
	*fixture          // the repository
	tree     *fixture // the worktree
	w        *git.Worktree
	opts     git.CommitOptions
}

// TestCommit commits what a conversation has left in its worktree. The commit has exactly what a look says has changed, but
// for what is named; the repository's own working tree and its other refs stay as they are.
func TestCommit(t *testing.T) {
	first := newRepo(t)
	for _, name := range []string{"a", "b", "old", "tool", "dir/x", "dir/y"} {
		first.write(name, "the file "+name+"\nhas three lines\nof text\n")
	}
	first.write(".gitignore", "/ignored\n")
	first.commit("first")
	first.write("a", "stashed\n")
	first.git("stash")
	first.write("a", "not committed\n")
	first.write("b", "staged\n")
	first.git("add", "b")
	first.git("branch", "other")
	rows := []struct {
		name string
		lay  func(r *fixture)    // in the repository, before the worktree is made
		work func(c *committing) // in the worktree
		want []string            // of git show --name-status
		left []string            // what is not in it, with the reason
		err  string              // why there is none
		same bool                // the looks do not show all of it
		more func(c *committing) // checks
	}{
		{name: "nothing", work: func(*committing) {}},
		{name: "what is ignored", work: func(c *committing) { c.tree.write("ignored", "x") }},
		{name: "files of all kinds", work: func(c *committing) {
			c.tree.write("new/file", "new\n")
			c.tree.write("a", "changed\n")
			c.tree.shell("mv old renamed; rm b; chmod +x tool; ln -s a link; ln -s /nowhere dangling; printf x > \"$(printf 'a\\tname')\"")
		}, want: []string{"M a", "A \"a\\tname\"", "D b", "A dangling", "A link", "A new/file", "R old renamed", "M tool"},
			more: func(c *committing) {
				for name, mode := range map[string]string{"tool": "100755", "link": "120000", "a": "100644"} {
					if got := c.git("ls-tree", c.w.Branch, name); !strings.HasPrefix(got, mode) {
						c.t.Errorf("%s: %s", name, got)
					}
				}
				must.Equal(c.t, "the message", "Do it\n\nCodex-Thread: one thread", c.git("log", "-1", "--format=%B", c.w.Branch))
				must.Equal(c.t, "the trailer", "one thread", c.git("log", "-1", "--format=%(trailers:key=Codex-Thread,valueonly,separator=%x2c)", c.w.Branch))
				must.Equal(c.t, "who", "codex-mcp <codex-mcp@localhost> codex-mcp <codex-mcp@localhost>", c.git("log", "-1", "--format=%an <%ae> %cn <%ce>", c.w.Branch))
				must.Equal(c.t, "the log", "commit: Do it", c.git("log", "-g", "-1", "--format=%gs", c.w.Branch))
			}},
		{name: "files in the place of folders, and the other way round", work: func(c *committing) {
			c.tree.shell("rm -r dir a; echo file > dir; mkdir a; echo x > a/x; rm b; ln -s dir b")
		}, want: []string{"D a", "A a/x", "M b", "A dir", "D dir/x", "D dir/y"}, same: true},
		{name: "a folder that is a link now", work: func(c *committing) { c.tree.shell("mv dir other; ln -s other dir") },
			want: []string{"A dir", "R dir/x other/x", "R dir/y other/y"}, same: true},
		{name: "the user's name", lay: func(r *fixture) {
			r.configure(setting{"user.name", "Jo <x> Doe."}, setting{"user.email", "jo@example.com"}, setting{"author.name", "no"})
		}, work: func(c *committing) { c.tree.write("a", "x") }, same: true, want: []string{"M a"}, more: func(c *committing) {
			must.Equal(c.t, "who", "Jo x Doe <jo@example.com>", c.git("log", "-1", "--format=%an <%ae>", c.w.Branch))
		}},
		{name: "what an earlier turn left, was staged, and what git was told not to look at", work: func(c *committing) {
			c.tree.write("a", "one\n")
			c.tree.git("add", "a")
			c.tree.write("a", "two\n")
			c.tree.write("ignored", "but added\n")
			c.tree.git("add", "--force", "ignored")
			c.tree.git("update-index", "--assume-unchanged", "b")
			c.tree.git("update-index", "--skip-worktree", "old", "tool")
			c.tree.write("b", "hidden\n")
			c.tree.write("tool", "hidden\n")
			must.OK(c.t, os.Remove(filepath.Join(c.tree.dir, "old")))
			c.tree.git("rm", "-q", "--cached", "dir/x")
			c.tree.write("intended", "x\n")
			c.tree.git("add", "-N", "intended")
		}, want: []string{"M a", "M b", "A ignored", "A intended", "M tool"}, same: true},
		{name: "a submodule that is left empty", lay: laySubmodule, work: func(c *committing) { c.tree.write("a", "x") }, want: []string{"M a"}},
		{name: "a submodule that changed", lay: laySubmodule, work: func(c *committing) {
			c.tree.git("-c", "protocol.file.allow=always", "submodule", "update", "--init")
			c.tree.git("-C", "module", "commit", "-q", "--allow-empty", "-m", "x")
			c.tree.write("module/x", "x")
			c.tree.write("a", "x")
		}, want: []string{"M a"}, left: []string{"module/: a submodule"}},
		{name: "a submodule whose commit is staged", lay: laySubmodule, work: func(c *committing) {
			c.tree.git("-c", "protocol.file.allow=always", "submodule", "update", "--init")
			c.tree.git("-C", "module", "commit", "-q", "--allow-empty", "-m", "x")
			c.tree.git("add", "module")
			c.tree.write("a", "x")
		}, want: []string{"M a"}, left: []string{"module/: a submodule"}},
		{name: "a submodule with files, and one that is gone", lay: laySubmodule, work: func(c *committing) { c.tree.write("module/x", "x") },
			left: []string{"module/: it is a submodule without a repository"}},
		{name: "a submodule that is gone", lay: laySubmodule, work: func(c *committing) { must.OK(c.t, os.Remove(filepath.Join(c.tree.dir, "module"))) },
			left: []string{"module/: a submodule"}},
		{name: "a repository in it", work: func(c *committing) {
			c.tree.git("clone", "-q", ".", "nested")
			c.tree.git("init", "-q", "empty")
			c.tree.write("a", "x")
		}, want: []string{"M a"}, left: []string{"empty/: another repository", "nested/: another repository"}},
		{name: "pointers of git-lfs and what they stand for", lay: func(r *fixture) {
			r.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
			for _, name := range []string{"one.bin", "two.bin", "gone.bin", "same.bin"} {
				r.write(name, lfsPointer)
			}
			r.commit("lfs")
		}, work: func(c *committing) {
			c.tree.write("one.bin", strings.Replace(lfsPointer, "4d7a", "5d7a", 1))
			c.tree.write("two.bin", "what it stands for\n")
			c.tree.write("new.bin", "what it stands for\n")
			c.tree.write("newpointer.bin", lfsPointer)
			must.OK(c.t, os.Remove(filepath.Join(c.tree.dir, "gone.bin")))
		}, want: []string{"R gone.bin newpointer.bin", "M one.bin"}, same: true,
			left: []string{"new.bin: git-lfs stores it elsewhere, and git-lfs does not run here", "two.bin: git-lfs stores it elsewhere, and git-lfs does not run here"}},
		{name: "another filter, and attributes that the model wrote", work: func(c *committing) {
			c.tree.write("dir/.gitattributes", "x filter=evil\ny text eol=crlf\n")
			c.tree.write("dir/x", "filtered\n")
			c.tree.write("dir/y", "crlf\r\n")
			c.tree.write("x", "not filtered\n")
		}, want: []string{"A dir/.gitattributes", "M dir/y", "A x"}, left: []string{"dir/x: a filter of git's converts it, which does not run here"},
			more: func(c *committing) {
				must.Equal(c.t, "y", "crlf\n", c.git("cat-file", "blob", c.w.Branch+":dir/y")+"\n")
			}},
		{name: "line ends by core.autocrlf", lay: func(r *fixture) { r.configure(setting{"core.autocrlf", "true"}) }, work: func(c *committing) {
			c.tree.write("new", "one\r\ntwo\r\n")
			c.tree.write("a", "one\r\ntwo\r\n")
		}, want: []string{"M a", "A new"}, more: func(c *committing) {
			for _, name := range []string{"new", "a"} {
				if text := c.git("cat-file", "blob", c.w.Branch+":"+name); strings.Contains(text, "\r") {
					c.t.Errorf("%s has %q", name, text)
				}
			}
		}},
		{name: "line ends by attributes", lay: func(r *fixture) {
			r.write(".gitattributes", "* text=auto\n*.bat text eol=crlf\n*.raw -text\n")
			r.write("x.bat", "one\r\n")
			r.commit("attributes")
		}, work: func(c *committing) {
			for _, name := range []string{"new.raw", "new.bat", "new"} {
				c.tree.write(name, "one\r\ntwo\r\n")
			}
			c.tree.write("x.bat", "one\r\ntwo\r\n")
		}, want: []string{"A new", "A new.bat", "A new.raw", "M x.bat"}, more: func(c *committing) {
			if text := c.git("cat-file", "blob", c.w.Branch+":new.raw"); text != "one\r\ntwo" && text != "one\r\ntwo\r" {
				c.t.Errorf("new.raw has %q", text)
			}
		}},
		{name: "what is withheld, too large, and special", work: func(c *committing) {
			c.opts.Withheld = func(path string) error {
				if filepath.Base(path) == ".env" {
					return errors.New("denied")
				}
				return nil
			}
			c.tree.write(".env", "SECRET\n")
			c.tree.write("big", strings.Repeat("0123456789abcdef", 1<<20)+"!")
			must.OK(c.t, syscall.Mkfifo(filepath.Join(c.tree.dir, "pipe"), 0o600), os.Remove(filepath.Join(c.tree.dir, "b")),
				syscall.Mkfifo(filepath.Join(c.tree.dir, "b"), 0o600))
			c.tree.write("a", "x")
		}, want: []string{"M a"}, left: []string{".env: withheld by the configuration", "b: a special file", "big: too large"}, same: true},
		{name: "a .git that leads elsewhere", work: func(c *committing) {
			c.git("clone", "-q", ".", "../elsewhere")
			c.tree.write(".git", "gitdir: "+filepath.Join(c.dir, "../elsewhere/.git")+"\n")
			c.tree.write("a", "x")
		}, want: []string{"M a"}, same: true, more: func(c *committing) {
			c.tree.write(".git", "gitdir: "+c.w.GitDir+"\n")
			must.Equal(c.t, "the other", "", (&fixture{c.t, filepath.Join(c.dir, "../elsewhere")}).git("log", "--format=%h", "origin/main..HEAD"))
		}},
		{name: "a .git that is a folder", work: func(c *committing) {
			must.OK(c.t, os.Remove(filepath.Join(c.tree.dir, ".git")))
			c.tree.git("init", "-q")
			c.tree.write("a", "x")
		}, want: []string{"M a"}, same: true, more: func(c *committing) {
			must.OK(c.t, os.RemoveAll(filepath.Join(c.tree.dir, ".git")))
			c.tree.write(".git", "gitdir: "+c.w.GitDir+"\n")
		}},
		{name: "a shallow clone", lay: func(r *fixture) {
			r.git("commit", "-q", "--allow-empty", "-m", "second")
			r.shell("git clone -q --depth 1 file://$PWD ../shallow && mv .git ../unused && mv ../shallow/.git .git")
		}, work: func(c *committing) { c.tree.write("a", "x") }, want: []string{"M a"}},
		{name: "a clone without files that nobody needs", lay: func(r *fixture) {
			r.git("config", "uploadpack.allowFilter", "true")
			r.shell("rm -r dir; git add -A; git commit -qm second; git clone -q --filter=blob:none file://$PWD ../partial && mv .git ../unused && mv ../partial/.git .git")
		}, work: func(c *committing) { c.tree.write("a", "x") }, want: []string{"M a"}},
		{name: "a rebase in the main working tree", lay: func(r *fixture) {
			r.shell("git stash drop -q; git checkout -q -f -b topic; echo x > a; git commit -qam topic; git checkout -q main; echo y > a; git commit -qam main; git checkout -q topic; git rebase main >/dev/null 2>&1 || true")
			r.git("rev-parse", "REBASE_HEAD")
		}, work: func(c *committing) { c.tree.write("b", "x") }, want: []string{"M b"}},
		{name: "a rebase in it", work: func(c *committing) {
			c.tree.shell("echo x > a; git commit -qam topic; git checkout -q -b base HEAD^; echo y > a; git commit -qam base; git checkout -q -; git rebase base >/dev/null 2>&1 || true")
			c.tree.write("b", "x")
		}, err: "is under way in it", same: true},
		{name: "a merge in it", work: func(c *committing) {
			c.tree.shell("git checkout -q -b base; echo y > a; git commit -qam base; git checkout -q -; echo x > a; git commit -qam topic; git merge base >/dev/null 2>&1 || true")
		}, err: "is under way in it (MERGE_HEAD)", same: true},
		{name: "another branch", work: func(c *committing) {
			c.tree.git("checkout", "-q", "-b", "mine")
			c.tree.write("b", "x")
		}, err: "is not checked out in it", same: true},
		{name: "a detached HEAD", work: func(c *committing) { c.tree.git("checkout", "-q", "--detach") }, err: "is not checked out in it", same: true},
		{name: "a branch that leads to another", work: func(c *committing) {
			c.git("symbolic-ref", "refs/heads/"+c.w.Branch, "refs/heads/other")
			c.tree.write("a", "x")
		}, want: []string{"M a"}, same: true},
		{name: "a worktree that is gone", work: func(c *committing) { must.OK(c.t, os.RemoveAll(c.tree.dir)) }, err: "is gone", same: true},
		{name: "a worktree that git has removed", work: func(c *committing) {
			c.git("worktree", "remove", "--force", c.tree.dir)
			c.tree.write("a", "x")
		}, err: "has the worktree no longer", same: true},
		{name: "a repository that is gone", work: func(c *committing) {
			must.OK(c.t, os.Rename(c.dir, c.dir+".moved"))
			c.fixture = &fixture{c.t, c.dir + ".moved"}
		}, err: "has the worktree no longer", same: true},
		{name: "another conversation's", work: func(c *committing) { must.OK(c.t, c.w.Owner("another thread")) }, err: "another conversation", same: true},
		{name: "an index that another git holds", work: func(c *committing) {
			c.tree.write("a", "x")
			must.OK(c.t, os.WriteFile(filepath.Join(c.w.GitDir, "index.lock"), nil, 0o600))
		}, err: "another git holds", same: true, more: func(c *committing) {
			must.OK(c.t, os.Remove(filepath.Join(c.w.GitDir, "index.lock")))
		}},
		{name: "an index in two parts", work: func(c *committing) {
			c.tree.git("update-index", "--split-index")
			c.tree.write("a", "x")
		}, same: true, want: []string{"M a"}},
		{name: "packed refs", work: func(c *committing) {
			c.git("pack-refs", "--all")
			c.tree.write("a", "x")
		}, same: true, want: []string{"M a"}},
		{name: "a SHA-256 repository", lay: func(r *fixture) {
			r.shell("rm -rf .git; git init -q -b main --object-format=sha256 --template=; git add -A; git commit -qm x; git branch other")
		}, work: func(c *committing) { c.tree.write("a", "x") }, same: true, want: []string{"M a"}},
		{name: "a prompt that hides something", work: func(c *committing) {
			c.opts.Prompt = "\n\n  Do\u202e it\x1b[31m " + strings.Repeat("long ", 40) + "\nsecond line"
			c.tree.write("a", "x")
		}, same: true, want: []string{"M a"}, more: func(c *committing) {
			subject := c.git("log", "-1", "--format=%s", c.w.Branch)
			if !strings.HasPrefix(subject, `Do\u{202E} it\x1B[31m long`) && !strings.HasPrefix(subject, `Do\u{202e} it\x1b[31m long`) || len([]rune(subject)) > 72 {
				c.t.Errorf("the subject is %q", subject)
			}
		}},
	}
	for i, r := range first.copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			r := r.in(t)
			if tt.lay != nil {
				tt.lay(r)
			}
			w, trees, err := r.worktree(t.Context(), r.dir)
			must.OK(t, err, w.Owner("one thread"))
			c := &committing{r, &fixture{t, w.Path}, w, git.CommitOptions{Prompt: "Do it\n\nand more", Thread: "one thread"}}
			var before *git.Before
			if !tt.same && tt.want != nil {
				before = must.Get(git.Look(t.Context(), w.Path, &git.Options{Scratch: scratch(t)}))(t)
				defer before.Remove()
			}
			tt.work(c)
			repository, tip := c.state(), ""
			if tt.err == "" {
				tip = c.git("rev-parse", w.Branch)
			}
			done, err := w.Commit(t.Context(), c.opts)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("%+v, %v, want %q", done, err, tt.err)
			}
			must.Equal(t, "the repository", repository, c.state())
			if names, _ := filepath.Glob(w.Path + ".commit"); names != nil {
				t.Errorf("left: %v", names)
			}
			if tt.more != nil {
				defer tt.more(c)
			}
			if err != nil {
				return
			}
			if out, err := c.try("fsck", "--full", "--no-progress", "--no-dangling"); err != nil || out != "" {
				t.Errorf("fsck: %s, %v", out, err)
			}
			var named []string
			leftOut := map[string]bool{}
			for _, g := range done.Left {
				named = append(named, g.Path+": "+g.Why)
				leftOut[g.Path] = true
			}
			must.Equal(t, "what is left out", fmt.Sprintf("%q", tt.left), fmt.Sprintf("%q", named))
			if len(tt.want) == 0 {
				must.Equal(t, "the commit", "", done.Commit)
				must.Equal(t, "the tip", tip, c.git("rev-parse", w.Branch))
				return
			}
			commit, shown, _ := strings.Cut(c.git("show", "--name-status", "--format=%H %P", "--find-renames", w.Branch), "\n\n")
			must.Equal(t, "the commit and its parent", done.Commit+" "+tip, commit)
			got := statusOf(shown)
			must.Equal(t, "the commit has", strings.Join(tt.want, "\n"), strings.Join(got, "\n"))
			if before != nil {
				changes, _, err := before.Compare(t.Context(), 1<<20)
				must.OK(t, err)
				must.Equal(t, "changes", linesOf(changes, leftOut), strings.Join(got, "\n"))
			}
			if tt.more != nil {
				tt.more(c)
			}
			if before != nil {
				if again, err := w.Commit(t.Context(), c.opts); err != nil || again.Commit != done.Commit {
					t.Errorf("a second commit: %+v, %v", again, err)
				}
			}
			for line := range strings.Lines(c.tree.git("status", "--porcelain", "--untracked-files=all", "--no-renames")) {
				if name := strings.Trim(strings.TrimSpace(line[2:]), `"`); !leftOut[name] && !leftOut[name+"/"] && name != "pipe" {
					t.Errorf("git status says %q", line)
				}
			}
			if found := must.Get(git.Scratch{}.FindWorktree(trees, w.Path))(t); found == nil {
				t.Error("the worktree has no record")
			}
		})
	}
}

func laySubmodule(r *fixture) {
	r.shell("git init -q ../o && cd ../o && git commit -q --allow-empty -m o")
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", filepath.Join(r.dir, "../o"), "module")
	r.git("commit", "-qm", "module", ".gitmodules", "module")
}

// state is all of the repository that a commit in a worktree must not change.
func (c *committing) state() string {
	c.t.Helper()
	index, _ := os.ReadFile(filepath.Join(c.dir, ".git", "index"))
	head, _ := os.ReadFile(filepath.Join(c.dir, ".git", "HEAD"))
	var refs []string
	for line := range strings.Lines(c.git("for-each-ref", "--format=%(refname) %(objectname) %(symref)")) {
		if !strings.HasPrefix(line, "refs/heads/"+c.w.Branch+" ") {
			refs = append(refs, line)
		}
	}
	status, _ := c.try("-c", "core.fsmonitor=false", "--no-optional-locks", "status", "--porcelain", "--ignore-submodules=all")
	return fmt.Sprintf("%s\n%q\n%q\n%s", head, index, refs, status)
}

// statusOf returns the lines of git show --name-status as those of linesOf.
func statusOf(text string) (lines []string) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if fields[0] = fields[0][:1]; fields[0] == "T" {
			fields[0] = "M"
		}
		lines = append(lines, strings.Join(fields, " "))
	}
	slices.SortFunc(lines, func(a, b string) int {
		return strings.Compare(strings.Trim(strings.Fields(a)[len(strings.Fields(a))-1], `"`), strings.Trim(strings.Fields(b)[len(strings.Fields(b))-1], `"`))
	})
	return lines
}

// linesOf returns changes, but for those that are left out.
func linesOf(changes []git.Change, left map[string]bool) string {
	var lines []string
	kinds := map[git.ChangeKind]string{git.Add: "A ", git.Update: "M ", git.Delete: "D ", git.Rename: "R "}
	for _, c := range changes {
		if left[c.Path] {
			continue
		}
		line := kinds[c.Kind]
		if c.From != "" {
			line += git.Quote(c.From) + " "
		}
		lines = append(lines, line+git.Quote(c.Path))
	}
	return strings.Join(lines, "\n")
}
