//go:build !windows

package repo_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
)

// trap is a script that leaves a trace when it runs.
type trap struct {
	t            *testing.T
	path, script string
}

func newTrap(t *testing.T) *trap {
	path := filepath.Join(t.TempDir(), "ran")
	return &trap{t, path, "touch '" + path + "'; cat"}
}

// sprung reports whether the script has run, and resets the trap.
func (tr *trap) sprung() bool {
	err := os.Remove(tr.path)
	return err == nil
}

// executable makes the script a program.
func (tr *trap) executable(path string) {
	tr.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+tr.script+"\n"), 0o755); err != nil {
		tr.t.Fatal(err)
	}
}

var programs = []string{
	"core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy", "sequence.editor", "gpg.program", "gpg.ssh.program",
	"credential.helper", "diff.external", "diff.evil.command", "diff.evil.textconv", "merge.evil.driver", "filter.evil.clean", "filter.evil.smudge",
	"filter.evil.process", "interactive.diffFilter", "pager.diff-tree", "pager.log", "uploadpack.packObjectsHook", "core.alternateRefsCommand",
	"alias.write-tree", "alias.diff-tree", "trailer.x.command", "submodule.nested.update",
}

// TestHostileWorktree checks that no program runs that a repository or a command in the worktree
// configures, and that their configuration does not change where files are read or written.
func TestHostileWorktree(t *testing.T) {
	trapped := func(b *bench, dir string, tr *trap) {
		b.t.Helper()
		settings := all(tr.script, programs...)
		for i, s := range settings {
			if s.key == "submodule.nested.update" {
				settings[i].value = "!" + s.value
			}
		}
		configure(b.t, filepath.Join(dir, ".git", "config"), append(settings, all("true", "commit.gpgSign", "submodule.recurse")...)...)
	}
	type row struct {
		name string
		// in is the scenario: its rows share a repository and a worktree.
		in string
		// repo spoils the repository, and work the worktree.
		repo func(b *bench, tr *trap)
		work func(b *bench, tr *trap, w *repo.Worktree)
		// control is a command that springs the trap, which proves that the trap works.
		control []string
	}
	rows := []row{ // in order: after some of them git commits no more, or blocks
		{name: "a submodule", in: "the repository", repo: func(b *bench, tr *trap) {
			b.git("init", "-q", "nested")
			lay(b.t, b.dir, map[string]string{"nested/x": "x"})
			b.gitIn(b.dir+"/nested", "add", "-A")
			b.gitIn(b.dir+"/nested", "commit", "-qm", "x")
			b.git("add", "nested")
			b.git("commit", "-qm", "nested")
			trapped(b, filepath.Join(b.dir, "nested"), tr)
			lay(b.t, b.dir, map[string]string{"nested/x": "y"})
		}, work: func(b *bench, tr *trap, w *repo.Worktree) {
			b.gitIn(w.Path(), "init", "-q", "nested")
			b.gitIn(w.Path()+"/nested", "commit", "-q", "--allow-empty", "-m", "x")
			trapped(b, filepath.Join(w.Path(), "nested"), tr)
		}, control: []string{"status"}},
		{name: "replaced objects", in: "the repository", repo: func(b *bench, _ *trap) {
			lay(b.t, b.dir, map[string]string{"evil": "evil\n"})
			evil := b.git("hash-object", "-w", "evil")
			b.git("replace", b.git("rev-parse", "HEAD:a.txt"), evil)
			lay(b.t, b.dir, map[string]string{"evil": "-"})
		}},
		{name: "filters", in: "the repository", repo: func(b *bench, tr *trap) {
			b.configure(all(tr.script, "filter.evil.clean", "filter.evil.smudge")...)
			b.configure(setting{"filter.evil.required", "true"})
			lay(b.t, b.dir, map[string]string{".git/info/attributes": "* filter=evil\n*.txt -filter\n"})
			lay(b.t, b.dir, map[string]string{"other": "x"})
		}, control: []string{"add", "-A"}},
		{name: "hooks", in: "the repository", repo: func(b *bench, tr *trap) {
			for _, name := range []string{"post-checkout", "post-index-change", "reference-transaction", "pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-merge", "pre-auto-gc", "fsmonitor-watchman", "applypatch-msg", "post-rewrite"} {
				tr.executable(filepath.Join(b.dir, ".git", "hooks", name))
				tr.executable(filepath.Join(b.dir, ".git", "own", name))
			}
		}, control: []string{"branch", "control"}},
		{name: "an included configuration", in: "the repository", repo: func(b *bench, tr *trap) {
			lay(b.t, b.dir, map[string]string{".git/more": "[core]\n\tfsmonitor = \"" + tr.script + "\"\n\tworktree = /\n[filter \"evil\"]\n\tclean = \"" + tr.script + "\"\n"})
			b.configure(setting{"include.path", "more"}, setting{"includeIf.gitdir:/.path", "more"})
		}},
		{name: "programs", in: "the repository", repo: func(b *bench, tr *trap) { trapped(b, b.dir, tr) }, control: []string{"status"}},
		{name: "hooks elsewhere", in: "the repository", repo: func(b *bench, tr *trap) {
			tr.executable(filepath.Join(b.dir, ".git", "own", "reference-transaction"))
			tr.executable(filepath.Join(b.dir, ".git", "own", "post-index-change"))
			b.configure(setting{"core.hooksPath", ".git/own"})
		}, control: []string{"branch", "another"}},
		{name: "a promise", in: "the repository", repo: func(b *bench, tr *trap) {
			b.configure(setting{"remote.origin.promisor", "true"}, setting{"extensions.partialClone", "origin"},
				setting{"remote.origin.url", "ext::sh -c '" + tr.script + "'"}, setting{"protocol.ext.allow", "always"})
		}},
		{name: "files that wait", in: "the repository", repo: func(b *bench, _ *trap) {
			pipe := filepath.Join(filepath.Dir(b.dir), "pipe")
			b.must(syscall.Mkfifo(pipe, 0o600))
			b.configure(all(pipe, "core.attributesFile", "core.excludesFile", "mailmap.file", "blame.ignoreRevsFile")...)
		}},
		{name: "the worktree's .git is a file of another repository", in: "the worktree, its .git a file", work: func(b *bench, tr *trap, w *repo.Worktree) {
			evil := b.evil(tr, trapped)
			lay(b.t, w.Path(), map[string]string{".git": "gitdir: " + evil + "\n"})
			b.gitIn(w.Path(), "status")
			if !tr.sprung() {
				b.t.Error("the trap is none")
			}
		}},
		{name: "git's own folder for the worktree leads elsewhere", in: "the worktree, its .git a file", work: func(b *bench, tr *trap, w *repo.Worktree) {
			evil := b.evil(tr, trapped)
			lay(b.t, filepath.Join(b.dir, ".git", "worktrees", "codex-mcp-"+w.ID()), map[string]string{
				"commondir": evil + "\n", "index": "-", "config.worktree": "[core]\n\tfsmonitor = \"" + tr.script + "\"\n",
			})
		}},
		{name: "the worktree's .git is a link", in: "the worktree, its .git a link", work: func(b *bench, tr *trap, w *repo.Worktree) {
			evil := b.evil(tr, trapped)
			lay(b.t, w.Path(), map[string]string{".git": "-"})
			lay(b.t, w.Path(), map[string]string{".git": "> " + evil})
		}},
		{name: "its own git", in: "the worktree, its .git a link", work: func(b *bench, tr *trap, w *repo.Worktree) {
			tr.executable(filepath.Join(w.Path(), "bin", "git"))
			b.t.Setenv("PATH", filepath.Join(w.Path(), "bin")+":"+os.Getenv("PATH"))
			lay(b.t, w.Path(), map[string]string{".gitignore": "bin\n.gitignore\n"})
		}},
		{name: "the worktree's .git is a folder", in: "the worktree, its .git a folder", work: func(b *bench, tr *trap, w *repo.Worktree) {
			lay(b.t, w.Path(), map[string]string{".git": "-"})
			b.gitIn(w.Path(), "init", "-q")
			trapped(b, w.Path(), tr)
			for _, name := range []string{"post-index-change", "reference-transaction"} {
				tr.executable(filepath.Join(w.Path(), ".git", "hooks", name))
			}
		}},
		{name: "variables", in: "the worktree, its .git a folder", work: func(b *bench, tr *trap, _ *repo.Worktree) {
			for name, value := range map[string]string{
				"GIT_EXTERNAL_DIFF": tr.script, "GIT_EDITOR": tr.script, "GIT_PAGER": tr.script, "GIT_INDEX_FILE": "/dev/null", "GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/",
				"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": tr.script, "GIT_OBJECT_DIRECTORY": "/nowhere", "GIT_NAMESPACE": "x",
			} {
				b.t.Setenv(name, value)
			}
		}},
		{name: "the worktree's .git is a pipe", in: "the worktree, its .git a pipe", work: func(b *bench, _ *trap, w *repo.Worktree) {
			lay(b.t, w.Path(), map[string]string{".git": "-"})
			b.must(syscall.Mkfifo(filepath.Join(w.Path(), ".git"), 0o600))
		}},
	}
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].in == rows[0].in {
			n++
		}
		group := rows[:n]
		rows = rows[n:]
		t.Run(group[0].in, func(t *testing.T) {
			b := newBench(t)
			tr := newTrap(t)
			b.commit(map[string]string{"a.txt": "one\n", "b.txt": "two\n", ".gitattributes": "*.txt diff=evil merge=evil\n*.dat filter=evil\n", "x.dat": "x"})
			for _, tt := range group {
				if tt.repo == nil {
					continue
				}
				tt.repo(b, tr)
				tr.sprung()
				if tt.control != nil {
					cmd := exec.CommandContext(t.Context(), "git", tt.control...)
					cmd.Dir = b.dir
					out, _ := cmd.CombinedOutput() // the script is not a good one
					if !tr.sprung() {
						t.Errorf("%s: the trap does not work: %s", tt.name, out)
					}
				}
			}
			lay(t, b.dir, map[string]string{"along.txt": "along\n"})
			w, _, err := b.store.Create(t.Context(), repo.CreateOptions{Cwd: b.dir, Uncommitted: true})
			if err != nil {
				t.Fatal(err)
			}
			if tr.sprung() {
				t.Error("creating runs a program of the repository")
			}
			for _, tt := range group {
				if tt.work != nil {
					tt.work(b, tr, w)
					tr.sprung()
				}
			}
			lay(t, w.Path(), map[string]string{"a.txt": "1\n", "new.txt": "new\n", "x.dat": "y"})
			s, err := w.Status(t.Context())
			if err != nil || len(s.Files) != 2 || s.Files[0].Path != "a.txt" || s.Files[1].Path != "new.txt" {
				t.Fatalf("%+v, %v", s, err)
			}
			p := b.plan(w)
			if c := p.Changes()[filepath.Join(b.dir, "a.txt")].Update; c == nil || !strings.Contains(c.UnifiedDiff, "-one\n+1\n") {
				t.Errorf("%+v", c)
			}
			if err := p.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(b.dir, "a.txt")); err != nil || string(got) != "1\n" {
				t.Errorf("%q, %v", got, err)
			}
			lay(t, w.Path(), map[string]string{"b.txt": "2\n"})
			if _, err := w.Branch(t.Context(), repo.BranchOptions{Name: "result"}); err != nil {
				t.Error(err)
			}
			lay(t, w.Path(), map[string]string{"b.txt": "3\n"})
			var loss *repo.LossError
			if err := w.Discard(t.Context(), ""); !errors.As(err, &loss) {
				t.Fatalf("discard: %v", err)
			}
			if err := w.Discard(t.Context(), loss.Token); err != nil {
				t.Fatal(err)
			}
			if tr.sprung() {
				t.Error("a program of the repository was run")
			}
			for name := range map[string]bool{w.Path(): true, b.store.Records + "/" + w.ID(): true} {
				if exists(name) {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

// evil makes a repository that configures the trap, and returns its git folder.
func (b *bench) evil(tr *trap, trapped func(*bench, string, *trap)) string {
	dir := filepath.Join(filepath.Dir(b.dir), "evil")
	if exists(dir) {
		return filepath.Join(dir, ".git")
	}
	b.must(os.Mkdir(dir, 0o755))
	b.gitIn(dir, "init", "-q")
	b.gitIn(dir, "commit", "-q", "--allow-empty", "-m", "evil")
	trapped(b, dir, tr)
	return filepath.Join(dir, ".git")
}
