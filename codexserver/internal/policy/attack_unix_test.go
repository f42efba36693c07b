//go:build unix

package policy_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// workplace is a repository whose commands run with a PATH of their own.
type workplace struct {
	dir, system string // system is the home, with an empty folder of PATH, which another session may write
	policy.Place
}

func newWorkplace(t *testing.T) *workplace {
	dir := repository(t)
	system, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(system, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"git", "bash", "touch", "sh"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	return &workplace{dir, system, policy.Place{Dir: dir, Env: []string{"PATH=" + system + "/bin:/usr/bin:/bin", "HOME=" + system, "GIT_CONFIG_NOSYSTEM=1"}, Roots: []string{dir}}}
}

// ask returns the question about a command, as an engine asks it.
func (w *workplace) ask(argv []string, confinable bool) *protocol.ExecApprovalRequest {
	q := &protocol.ExecApprovalRequest{Command: argv, Cwd: w.Dir, Confinable: confinable, Placed: true}
	q.Program, q.Replaceable = w.Replaceable(argv)
	if sum, ok := w.Content(argv); ok {
		q.Content = sum
	}
	q.Unasked = w.Unasked(argv).Unasked
	return q
}

// program writes a program that proves that it ran.
func (w *workplace) program(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return os.WriteFile(file, []byte("#!/bin/sh\necho ran >"+w.proof()+"\n"), 0o755)
}

func (w *workplace) proof() string { return filepath.Join(w.dir, "proof") }

// naive is a rule as many programs have it: the text of the command begins with that of the
// rule, whatever the case, and the program may have a folder.
func naive(rule []string, argv []string) bool {
	text := path.Base(argv[0]) + " " + strings.Join(argv[1:], " ")
	if len(argv) == 3 && argv[1] == "-lc" {
		text = argv[2]
	}
	return strings.HasPrefix(strings.ToLower(text), strings.Join(rule, " "))
}

// TestAttacksOnRules accepts a rule, and then attacks it. Each attack succeeds against a rule
// that only compares the beginning: where proof is true, the command is started to show it.
func TestAttacksOnRules(t *testing.T) {
	append2 := func(file, text string) func(w *workplace) error {
		return func(w *workplace) error {
			old, _ := os.ReadFile(filepath.Join(w.dir, file))
			return write(filepath.Join(w.dir, file), string(old)+strings.ReplaceAll(text, "DIR", w.dir))
		}
	}
	evil := func(then func(w *workplace) error) func(w *workplace) error {
		return func(w *workplace) error {
			if err := w.program(filepath.Join(w.dir, "evil")); err != nil || then == nil {
				return err
			}
			return then(w)
		}
	}
	far := func(w *workplace) error { // a repository with a hook
		w.start([]string{"git", "init", "-q", "--bare", "far"})
		return w.program(filepath.Join(w.dir, "far", "hooks", "pre-receive"))
	}
	push := []string{"git", "push", "origin", "main"}
	const script = "bash -lc "
	for _, tt := range []struct {
		class, name string
		rule        string // the accepted command; "" is git push origin main
		attack      func(w *workplace) error
		command     string // the next command; "" is the same
		inside      bool   // the attack also counts for a rule for runs in the sandbox
		proof       bool
	}{
		{class: "prefix", name: "a longer word", command: "git push-all", inside: true},
		{class: "prefix", name: "a longer name of a folder", command: "git pushes/x", inside: true},
		{class: "prefix", name: "an option that destroys", command: "git push --force origin main", inside: true},
		{class: "prefix", name: "an option behind --", command: "git push origin main -- --force", inside: true},
		{class: "prefix", name: "short options together", command: "git push -uf origin main", inside: true},
		{class: "prefix", name: "an option in a branch", command: "git push origin +main", inside: true},
		{class: "prefix", name: "a program", attack: evil(nil), command: "git push --receive-pack=DIR/evil DIR main", inside: true, proof: true},
		{class: "prefix", name: "a program, abbreviated", attack: evil(nil), command: "git push DIR main --rece=DIR/evil", inside: true, proof: true},
		{class: "prefix", name: "a program, as a further word", attack: evil(nil), command: "git push --exec DIR/evil DIR main", inside: true, proof: true},
		{class: "prefix", name: "a folder in the place of a remote", attack: far, command: "git push far main", proof: true},
		{class: "quoting", name: "two commands", command: script + "git push; touch proof", inside: true, proof: true},
		{class: "quoting", name: "a word in quotes", command: script + `git push "--force" origin`, inside: true},
		{class: "quoting", name: "a word from pieces", command: script + `git push --fo'rc'e origin`, inside: true},
		{class: "quoting", name: "an escaped option", command: script + `git push \--force origin`, inside: true},
		{class: "quoting", name: "a substitution", command: script + `git push $(touch proof)`, inside: true, proof: true},
		{class: "quoting", name: "a substitution in quotes", command: script + "git push \"`touch proof`\"", inside: true, proof: true},
		{class: "quoting", name: "a redirection", command: script + "git push >proof", inside: true, proof: true},
		{class: "quoting", name: "a pipe", command: script + "git push | touch proof", inside: true, proof: true},
		{class: "newline", name: "in a script", command: script + "git push\ntouch proof", inside: true, proof: true},
		{class: "newline", name: "a carriage return", command: script + "git push\rtouch", inside: true},
		{class: "newline", name: "a comment", command: script + "git push #\ntouch proof", inside: true, proof: true},
		{class: "newline", name: "in a word", command: script + "git push 'origin\n--force'", inside: true},
		{class: "unicode", name: "an invisible character", command: "git push\u200b", inside: true},
		{class: "unicode", name: "a letter that looks alike", command: script + "git push\u2028--force", inside: true},
		{class: "unicode", name: "a wide option", command: "git push \uff0d\uff0dforce", inside: true},
		{class: "unicode", name: "not UTF-8", command: "git push \xff", inside: true},
		{class: "alias", name: "of git", attack: append2(".git/config", "[alias]\n\tpush-all = !touch DIR/proof\n"), command: "git push-all", inside: true, proof: true},
		{class: "alias", name: "of the shell", attack: func(w *workplace) error {
			w.Env = append(w.Env, "HOME="+w.dir)
			return write(filepath.Join(w.dir, ".bash_profile"), "git() { touch "+w.proof()+"; }\n")
		}, command: script + "git push", inside: true, proof: true},
		{class: "alias", name: "in the script", command: script + "git push && alias git=touch && git push", inside: true},
		{class: "PATH", name: "an earlier folder", attack: func(w *workplace) error {
			w.Env[0] = "PATH=" + w.dir + "/bin:" + strings.TrimPrefix(w.Env[0], "PATH=")
			return w.program(filepath.Join(w.dir, "bin", "git"))
		}, inside: true, proof: true},
		{class: "PATH", name: "the current folder", attack: func(w *workplace) error {
			w.Env[0] = "PATH=:" + strings.TrimPrefix(w.Env[0], "PATH=")
			return w.program(filepath.Join(w.dir, "git"))
		}, inside: true},
		{class: "PATH", name: "an assignment", command: script + "git push && PATH=. git push", inside: true},
		{class: "PATH", name: "a program by its path", attack: evil(func(w *workplace) error { return os.Rename(filepath.Join(w.dir, "evil"), filepath.Join(w.dir, "git")) }), command: "DIR/git push", inside: true, proof: true},
		{class: "symlinked program", name: "in PATH", attack: evil(func(w *workplace) error {
			return os.Symlink(filepath.Join(w.dir, "evil"), filepath.Join(w.system, "bin", "git"))
		}), inside: true, proof: true},
		{class: "git configuration", name: "on the command line", command: "git push -c core.sshCommand=x", inside: true},
		{class: "git configuration", name: "the program of the network", attack: evil(append2(".git/config", "[core]\n\tsshCommand = DIR/evil\n")), proof: true},
		{class: "git configuration", name: "in one line", attack: evil(append2(".git/config", "[core] sshCommand = DIR/evil\n")), proof: true},
		{class: "git configuration", name: "in another case, with a continuation", attack: evil(append2(".git/config", "[CORE]\n\tSSHCOMMAND = \\\n DIR/evil\n")), proof: true},
		{class: "git configuration", name: "in an included file", attack: evil(func(w *workplace) error {
			return firstError(append2("more", "[core]\n\tsshCommand = DIR/evil\n")(w), append2(".git/config", "[include]\n\tpath = ../more\n")(w))
		}), proof: true},
		{class: "git configuration", name: "of the worktree", attack: evil(func(w *workplace) error {
			return firstError(append2(".git/config.worktree", "[core]\n\tsshCommand = DIR/evil\n")(w), append2(".git/config", "[extensions]\n\tworktreeConfig = true\n")(w))
		}), proof: true},
		{class: "git configuration", name: "a hook", attack: func(w *workplace) error { return w.program(filepath.Join(w.dir, ".git/hooks/pre-push")) }},
		{class: "git configuration", name: "hooks elsewhere", attack: append2(".git/config", "[core]\n\thooksPath = DIR\n")},
		{class: "git configuration", name: "a remote of this machine", attack: func(w *workplace) error {
			return firstError(far(w), write(filepath.Join(w.dir, ".git/config"), strings.Replace(pushing, "git@localhost:work.git", w.dir+"/far", 1)))
		}, proof: true},
		{class: "git configuration", name: "another remote", attack: func(w *workplace) error {
			return write(filepath.Join(w.dir, ".git/config"), strings.Replace(pushing, "localhost", "evil.example", 1))
		}},
		{class: "git configuration", name: "a remote that is a folder after all", attack: func(w *workplace) error {
			return write(filepath.Join(w.dir, ".git/config"), strings.Replace(pushing, "git@localhost:work.git", "git@far/x:y", 1))
		}},
		{class: "git configuration", name: "another repository in its place", attack: evil(func(w *workplace) error {
			other := filepath.Join(w.dir, "other")
			return firstError(os.Mkdir(other, 0o777), os.Symlink(w.dir+"/.git/objects", other+"/objects"), os.Symlink(w.dir+"/.git/refs", other+"/refs"), write(other+"/HEAD", "ref: refs/heads/main\n"),
				write(other+"/config", pushing+"[core]\n\tsshCommand = "+w.dir+"/evil\n"), write(filepath.Join(w.dir, ".git/commondir"), "../other\n"))
		}), proof: true},
		{class: "git configuration", name: "a bare repository", attack: evil(func(w *workplace) error {
			w.Dir = filepath.Join(w.dir, "bare")
			return firstError(os.Mkdir(w.Dir, 0o777), os.Symlink(w.dir+"/.git/objects", w.Dir+"/objects"), os.Symlink(w.dir+"/.git/refs", w.Dir+"/refs"), write(w.Dir+"/HEAD", "ref: refs/heads/main\n"),
				write(w.Dir+"/config", strings.Replace(pushing, "bare = false", "bare = true\n\tsshCommand = "+w.dir+"/evil", 1)))
		}), proof: true},
		{class: "git configuration", name: "no repository, so that git looks above", attack: func(w *workplace) error {
			return os.Remove(filepath.Join(w.dir, ".git/HEAD"))
		}},
		{class: "case-insensitive names", name: "the program", command: "GIT push", inside: true},
		{class: "case-insensitive names", name: "the command", command: "git PUSH", inside: true},
		{class: "case-insensitive names", name: "with its ending", command: "Git push --force", inside: true},
		{class: "another repository", name: "next to it", attack: func(w *workplace) error { w.Dir = filepath.Dir(w.dir); return nil }, inside: true},
		{class: "another repository", name: "in it", attack: func(w *workplace) error {
			w.Dir = filepath.Join(w.dir, "inner")
			return write(filepath.Join(w.Dir, ".git", "config"), pushing)
		}, inside: true},
		{class: "another repository", name: "by a command before", command: script + "git push && cd .. && git push", inside: true},
		{class: "another repository", name: "by an option", command: "git push -C .. origin", inside: true},
		{class: "exact words", name: "a further word", rule: "wc x.py", command: "wc x.py y", inside: true},
		{class: "exact words", name: "a changed file", rule: "wc x.py", attack: append2("x.py", "evil()\n"), inside: true},
		{class: "exact words", name: "a file that is a link", rule: "wc x.py", attack: func(w *workplace) error {
			return firstError(os.Rename(filepath.Join(w.dir, "x.py"), filepath.Join(w.dir, "y.py")), os.Symlink("y.py", filepath.Join(w.dir, "x.py")))
		}, inside: true},
		{class: "exact words", name: "in a script with more", rule: "wc x.py", command: script + "wc x.py; touch proof", inside: true},
		{class: "exact words", name: "in another folder", rule: "wc x.py", attack: func(w *workplace) error {
			w.Dir = filepath.Join(w.dir, "src")
			return write(filepath.Join(w.Dir, "x.py"), "evil()\n")
		}, inside: true},
	} {
		for _, confinable := range []bool{false, true} {
			if confinable && !tt.inside {
				continue // there it runs in the sandbox, whatever git starts
			}
			entry := map[bool]string{false: "outside", true: "in the sandbox"}[confinable]
			t.Run(tt.class+"/"+tt.name+"/"+entry, func(t *testing.T) {
				w := newWorkplace(t)
				accepted := push
				words := []string{"git", "push"}
				if tt.rule != "" {
					accepted = strings.Fields(tt.rule)
					words = accepted
				}
				p, err := policy.Explain(w.ask(accepted, confinable))
				if err != nil {
					t.Fatal(err)
				}
				rules := []policy.Rule{p.Rule}
				if wide, ok := p.Everywhere(); ok && tt.class != "another repository" {
					rules = append(rules, wide.Rule)
				}
				if _, ok := policy.Covers(rules, w.ask(accepted, confinable)); !ok {
					t.Fatal("the rule does not allow what was asked")
				}
				if tt.proof {
					w.start([]string{"git", "-c", "user.name=x", "-c", "user.email=x@localhost", "commit", "-q", "--allow-empty", "-m", "x"}) // without one nothing is pushed
				}
				if tt.attack != nil {
					if err := tt.attack(w); err != nil {
						t.Fatal(err)
					}
				}
				argv := accepted
				if rest, ok := strings.CutPrefix(tt.command, script); ok {
					argv = []string{"bash", "-lc", rest}
				} else if tt.command != "" {
					argv = strings.Split(strings.ReplaceAll(tt.command, "DIR", w.dir), " ")
				}
				if !naive(words, argv) {
					t.Error("a naive rule does not allow it either")
				}
				if _, ok := policy.Covers(rules, w.ask(argv, confinable)); ok {
					t.Error("the rule allows it")
				}
				if tt.proof && !confinable {
					w.start(argv)
					if _, err := os.Stat(w.proof()); err != nil {
						t.Errorf("nothing happens when the command runs: %v", err)
					}
				}
			})
		}
	}
}

// start starts a command as a naive rule would let it.
func (w *workplace) start(argv []string) {
	cmd := exec.Command(argv[0], argv[1:]...)
	if !strings.Contains(argv[0], "/") {
		for _, dir := range slices.Backward(filepath.SplitList(strings.TrimPrefix(w.Env[0], "PATH="))) {
			if file := filepath.Join(dir, argv[0]); isThere(file) {
				cmd.Path, cmd.Err = file, nil
			}
		}
	}
	cmd.Dir, cmd.Env = w.Dir, w.Env
	_ = cmd.Run()
}

func isThere(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
