package tool_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox/sandboxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// accepting is a host with the rules of a home. A person accepts the rule that a question
// proposes, or approves for the session, and denies once they have left.
type accepting struct {
	*host
	kept    *rulefile.Store
	session bool
	rules   approval.Rules
	left    bool
	asked   int
}

func (h *accepting) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	d := board.New(&board.Options{Kept: h.kept, Rules: h.rules}, nil).Decide(ctx, &approval.Request{Event: r, Question: &elicit.Question{}})
	if d.By == approval.ByRule {
		return d.Outcome
	}
	h.asked++
	switch {
	case h.left:
		return elicit.Outcome{Decision: elicit.Denied}
	case h.session:
		return elicit.Outcome{Decision: elicit.ApprovedForSession}
	}
	if p, ok := policy.Propose(&r); ok {
		_, _ = h.kept.Add(rulefile.Kept{Rule: p.Rule, By: "client", Words: p.Words})
	}
	return elicit.Outcome{Decision: elicit.Denied} // it does not run now
}

// unaskedAttacks let a command that nobody is asked about start a program of the model. In
// scripts and variables TOP is the folder of all, EVIL the program's text.
var unaskedAttacks = []struct {
	name    string
	argv    string // "" is git push origin main
	session bool   // only for the session
	exact   bool   // only by exact words, or for the session
	path    string // folders before those of the system; tools by default
	env     []string
	files   map[string]string // before anyone is asked; a value that begins with -> is a link
	folder  string            // where the attacker may write
	script  string            // runs there, in the sandbox
}{
	{name: "ssh, first in PATH", folder: "tools", script: "put ssh"},
	{name: "git, first in PATH", folder: "tools", script: "put git"},
	{name: "ssh through a link in PATH", files: map[string]string{"tools/ssh": "->../dots/ssh"}, folder: "dots", script: "put ssh"},
	{name: "ssh in node_modules", path: "work/node_modules/.bin", folder: "work", script: "mkdir -p node_modules/.bin; put node_modules/.bin/ssh"},
	{name: "GIT_SSH", env: []string{"GIT_SSH=TOP/tools/any"}, folder: "tools", script: "put any"},
	{name: "GIT_SSH by its name", env: []string{"GIT_SSH=any"}, folder: "tools", script: "put any"},
	{name: "GIT_SSH_COMMAND", env: []string{"GIT_SSH_COMMAND=TOP/tools/any -x"}, folder: "tools", script: "put any"},
	{name: "GIT_EXEC_PATH", env: []string{"GIT_EXEC_PATH=TOP/tools"}, folder: "tools", script: "put git-push"},
	{name: "GIT_CONFIG_GLOBAL", env: []string{"GIT_CONFIG_GLOBAL=TOP/dots/config"}, files: map[string]string{"dots/config": "[user]\n\tname = x\n"}, folder: "dots", script: `put any; printf '[core]\n\tsshCommand = TOP/dots/any\n' >config`},
	{name: "a linked configuration of git", files: map[string]string{"dots/config": "[user]\n\tname = x\n", "home/.gitconfig": "->../dots/config"}, folder: "dots", script: `put any; printf '[core]\n\tsshCommand = TOP/dots/any\n' >config`},
	{name: "a linked folder of git's configuration", files: map[string]string{"dots/config": "[user]\n\tname = x\n", "home/.config/git": "->../../dots"}, folder: "dots", script: `put any; printf '[core]\n\tsshCommand = TOP/dots/any\n' >config`},
	{name: "a program of the user's configuration of git", files: map[string]string{"tools/own": "#!/bin/sh\nexit 1\n", "home/.gitconfig": "[core]\n\tsshCommand = TOP/tools/own\n"}, folder: "tools", script: "put own"},
	{name: "the repository's configuration", folder: "work", script: `put any; printf '[core]\n\tsshCommand = TOP/work/any\n' >>.git/config`},
	{name: "a hook", folder: "work", script: "put .git/hooks/pre-push"},
	{name: "the interpreter python3", exact: true, argv: "TOP/bin/deploy", files: map[string]string{"bin/deploy": "#!/usr/bin/env python3\n"}, folder: "tools", script: "put python3"},
	{name: "the interpreter bash", exact: true, argv: "TOP/bin/deploy", files: map[string]string{"bin/deploy": "#!/usr/bin/env bash\n"}, folder: "tools", script: "put bash"},
	{name: "the interpreter node, by -S", exact: true, argv: "TOP/bin/deploy", files: map[string]string{"bin/deploy": "#!/usr/bin/env -S node --x\n"}, folder: "tools", script: "put node"},
	{name: "an interpreter by its path", exact: true, argv: "TOP/bin/deploy", files: map[string]string{"bin/deploy": "#!TOP/tools/any\n", "tools/any": "#!/bin/sh\nexit 0\n"}, folder: "tools", script: "put any"},
	{name: "what a wrapper starts", exact: true, argv: "TOP/bin/deploy", files: map[string]string{"bin/deploy": "#!/bin/sh\nid\n"}, folder: "tools", script: "put id"},
	{name: "what a wrapper of a shell starts", exact: true, argv: "bash|-lc|TOP/bin/deploy", files: map[string]string{"bin/deploy": "#!/bin/sh\nid\n"}, folder: "tools", script: "put id"},
	{name: "a shell's start file", exact: true, argv: "TOP/bin/deploy", env: []string{"BASH_ENV=TOP/tools/rc"}, files: map[string]string{"bin/deploy": "#!/bin/bash\ntrue\n"}, folder: "tools", script: "put rc"},
	{name: "the program itself", exact: true, argv: "TOP/tools/deploy", files: map[string]string{"tools/deploy": "#!/bin/sh\nexit 0\n"}, folder: "tools", script: "put deploy"},
	{name: "a file that the words name", session: true, argv: "sh|TOP/tools/x", files: map[string]string{"tools/x": "true\n"}, folder: "tools", script: "put x"},
}

// TestAttacksOnWhatNobodyIsAskedAbout has a person accept a rule, or approve for the session,
// and a command in the sandbox plant a program before or after that: one of the same
// conversation, or one of another server. The server runs the command again, perhaps after a
// restart. The planted program never runs outside the sandbox. Each attack meets every other
// combination, and the next attack the rest.
func TestAttacksOnWhatNobodyIsAskedAbout(t *testing.T) {
	sandboxtest.NeedTier(t, sandbox.TierThread)
	for i, tt := range unaskedAttacks {
		n := i // so that the next attack begins with another combination
		for _, kind := range []string{"rule", "session", "asked, rule", "asked, session"} {
			asked := strings.HasPrefix(kind, "asked")
			if asked && i%6 != 0 {
				continue // what a rule asks about depends on the words alone
			}
			for _, who := range []string{"the same server", "another server", "another server, then a restart"} {
				for _, when := range []string{"before", "after"} {
					if strings.HasSuffix(kind, "rule") && tt.session || strings.HasSuffix(kind, "session") && (strings.Contains(who, "restart") || when == "before") {
						continue // a person has just approved what runs
					}
					if when == "before" && (who == "the same server" && tt.folder != "work" || tt.files["tools/deploy"] != "" || strings.HasPrefix(tt.name, "a program of")) {
						continue
					}
					if n++; !servertest.Plays(n, *whole) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s/%s", tt.name, kind, who, when), func(t *testing.T) {
						t.Parallel()
						f := newUnaskedField(t, tt.path, tt.env, tt.files)
						here := strings.NewReplacer("TOP", f.top)
						argv := strings.Split(here.Replace(tt.argv), "|")
						if tt.argv == "" {
							argv = []string{"git", "push", "origin", "main"}
						}
						call := shellCall(t, escalated, argv...)
						h := &accepting{host: &host{}, kept: rulefile.New(f.home(), nil), session: strings.HasSuffix(kind, "session")}
						if asked {
							h.rules.Ask = [][]string{argv[:1]}
						}
						turn := f.server(t, h, f.work)
						plant := func() {
							writer := turn
							if folder := filepath.Join(f.top, tt.folder); who != "the same server" || folder != f.work {
								writer = f.server(t, h, folder)
							}
							script := "put() { printf '%s\\n' '#!/bin/sh' 'echo x >" + f.outside + "/proof' >$1; chmod +x $1; }\n" + here.Replace(tt.script)
							if res, err := writer.Call(t.Context(), shellCall(t, "", "sh", "-c", script)); err != nil || !strings.Contains(res.Output, `"exit_code":0`) {
								t.Fatalf("%s, %v", res.Output, err)
							}
						}
						if when == "before" {
							plant()
						}
						if _, err := turn.Call(t.Context(), call); err != nil {
							t.Fatal(err)
						}
						h.left = true
						if when == "after" {
							plant()
						}
						if strings.Contains(who, "restart") {
							h.kept = rulefile.New(f.home(), nil)
							turn = f.server(t, h, f.work)
						}
						if _, err := turn.Call(t.Context(), call); err != nil {
							t.Fatal(err)
						}
						if _, err := os.Stat(filepath.Join(f.outside, "proof")); err == nil {
							t.Errorf("the program ran; asked %d times; %s", h.asked, h.steps())
						}
						if asked && h.asked != 2 {
							t.Errorf("asked %d times, although a rule asks each time", h.asked)
						}
					})
				}
			}
		}
	}
}

// TestUnaskedRuns checks that the usual setups run without a question after an approval, also
// after a restart, and what the command then has: no variable and no folder of PATH that leads
// to what commands can write.
func TestUnaskedRuns(t *testing.T) {
	const show = "#!/bin/sh\necho \"$PATH ${GIT_SSH-none} ${NODE_OPTIONS-none} ${PLUGINS-none} $KUBECONFIG $SSH_AUTH_SOCK\" >>TOP/outside/shown\n"
	for _, tt := range []struct {
		name, argv string
		env        []string
		files      map[string]string
		want       string // "asked" or how often the command runs, then what it has shown at last
		once       bool   // no rule, because the program lies in /tmp
	}{
		{name: "git push", argv: "git|push|origin|main", want: "2"},
		{name: "git push in a script", argv: "bash|-lc|git push origin main", want: "2"},
		{name: "git push with an agent", argv: "git|push", env: []string{"SSH_AUTH_SOCK=TOP/home/agent", "GIT_AUTHOR_NAME=x", "GIT_EDITOR=true"}, want: "2"},
		{name: "git push with a linked configuration", argv: "git|push", files: map[string]string{"dots/x": "", "home/.gitconfig": "->../dots/x"}, want: "asked"},
		{name: "git push with settings in the environment", argv: "git|push", env: []string{"GIT_CONFIG_COUNT=0"}, want: "asked"},
		{name: "a script", argv: "TOP/bin/show", files: map[string]string{"bin/show": show}, env: []string{
			"GIT_SSH=TOP/tools/x", "NODE_OPTIONS=--require TOP/tools/x", "KUBECONFIG=TOP/home/kube", "SSH_AUTH_SOCK=TOP/home/agent", "GOPATH=TOP/home/go", "PLUGINS=TOP/tools",
		}, want: "2 /usr/bin:/bin none none none TOP/home/kube TOP/home/agent", once: true},
		{name: "a program of the user in PATH", argv: "own|x", files: map[string]string{"tools/own": "#!/bin/sh\necho ran >>TOP/outside/shown\n"}, want: "2 ran", once: true},
	} {
		for _, session := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/session %t", tt.name, session), func(t *testing.T) {
				t.Parallel()
				f := newUnaskedField(t, "", tt.env, tt.files)
				h := &accepting{host: &host{}, kept: rulefile.New(f.home(), nil), session: session}
				turn := f.server(t, h, f.work)
				argv := strings.Split(strings.ReplaceAll(tt.argv, "TOP", f.top), "|")
				for range 3 {
					if _, err := turn.Call(t.Context(), shellCall(t, escalated, argv...)); err != nil {
						t.Fatal(err)
					}
					h.left = true
					if !session {
						turn = f.server(t, h, f.work)
					}
				}
				got := fmt.Sprint(strings.Count(h.steps(), "begin"))
				if session && h.asked == 1 { // it ran after the question, too
					got = fmt.Sprint(strings.Count(h.steps(), "begin") - 1)
				}
				if h.asked > 1 {
					got = "asked"
				}
				if shown, err := os.ReadFile(filepath.Join(f.outside, "shown")); err == nil && h.asked == 1 {
					lines := strings.Split(strings.TrimSpace(string(shown)), "\n")
					got += " " + strings.ReplaceAll(lines[len(lines)-1], f.top, "TOP")
				}
				if got != tt.want && !(tt.once && !session && got == "asked") {
					t.Errorf("%s, want %s; asked %d times; %s", got, tt.want, h.asked, h.steps())
				}
			})
		}
	}
}

// TestNothingIsExchangedBetweenLooks has a command of another server, or of the same turn,
// exchange the configuration of git all the time. A person is asked while it runs.
func TestNothingIsExchangedBetweenLooks(t *testing.T) {
	sandboxtest.NeedTier(t, sandbox.TierThread)
	for _, same := range []bool{false, true} {
		for _, session := range []bool{false, true} {
			t.Run(fmt.Sprintf("same turn %t/session %t", same, session), func(t *testing.T) {
				t.Parallel()
				f := newUnaskedField(t, "", nil, nil)
				h := &accepting{host: &host{}, kept: rulefile.New(f.home(), nil), session: session}
				turn := f.server(t, h, f.work)
				push := shellCall(t, escalated, "git", "push", "origin", "main")
				if _, err := turn.Call(t.Context(), push); err != nil {
					t.Fatal(err)
				}
				h.left, h.asked = true, 0
				writer := turn
				if !same {
					writer = f.server(t, h, f.work)
				}
				f.put(t, "work/good", readText(t, f.work+"/.git/config"))
				f.put(t, "work/bad", readText(t, f.work+"/.git/config")+"[core]\n\tsshCommand = "+f.work+"/evil\n")
				f.put(t, "work/evil", "#!/bin/sh\necho x >"+f.outside+"/proof\n")
				script := "echo up; while :; do cp bad .git/x; mv .git/x .git/config; cp good .git/x; mv .git/x .git/config; done"
				writer.SetFirstLook(time.Millisecond)
				printed(t, writer, output(t, writer, shellCall(t, background, "sh", "-c", script)), "up\n")
				const times = 20
				for range times {
					if _, err := turn.Call(t.Context(), push); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := os.Stat(f.outside + "/proof"); err == nil || h.asked != times {
					t.Errorf("asked %d times; proof: %v", h.asked, err)
				}
			})
		}
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pushable is the .git of a repository with a commit and an origin, made once for all attacks, and no
// more than git needs to push.
var pushable = sync.OnceValues(func() (fs.FS, error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for _, words := range []string{
		"init -q --template= -b main", "commit -q --allow-empty -m x", "remote add origin git@localhost:work.git",
	} {
		cmd := exec.Command("git", strings.Fields("-c user.name=x -c user.email=x@localhost "+words)...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("git %s: %w: %s", words, err, out)
		}
	}
	git, all := os.DirFS(filepath.Join(dir, ".git")), fstest.MapFS{"hooks": {Mode: fs.ModeDir | 0o755}}
	return all, fs.WalkDir(git, ".", func(path string, d fs.DirEntry, err error) error {
		switch path {
		case "logs", "info", "objects/info", "objects/pack", "refs/tags", "branches":
			return fs.SkipDir
		case "index", "COMMIT_EDITMSG", "description":
			return nil
		}
		if err != nil || d.IsDir() {
			all[path] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			return err
		}
		text, err := fs.ReadFile(git, path)
		all[path] = &fstest.MapFile{Data: text, Mode: 0o644}
		return err
	})
})

// newUnaskedField makes the folders of an attack.
func newUnaskedField(t *testing.T, path string, env []string, files map[string]string) *field {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &field{top: top, work: filepath.Join(top, "work"), outside: filepath.Join(top, "outside")}
	here := strings.NewReplacer("TOP", top)
	if path == "" {
		path = "tools"
	}
	f.env = []string{"PATH=" + filepath.Join(top, path) + ":/usr/bin:/bin", "HOME=" + filepath.Join(top, "home"), "TMPDIR=" + os.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
	for _, name := range []string{"work/file", "outside/file", "home/file", "tools/file", "dots/file", "codex/file"} {
		f.put(t, name, "one\n")
	}
	repository, err := pushable()
	if err == nil {
		err = os.CopyFS(filepath.Join(f.work, ".git"), repository)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if to, link := strings.CutPrefix(text, "->"); link {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		f.put(t, name, here.Replace(text))
	}
	for _, entry := range env {
		f.env = append(f.env, here.Replace(entry))
	}
	return f
}

// home is the home of the servers, which no command can write.
func (f *field) home() string { return filepath.Join(f.top, "codex") }

// server starts a conversation of its own server in a folder.
func (f *field) server(t *testing.T, h *accepting, cwd string) *tool.Turn {
	t.Helper()
	box := newBox(tool.Options{
		Environ: f.env, Sandbox: tool.Confine(sandbox.New(sandbox.Options{})), FileTools: true, Ask: h.rules.Ask,
		Marks: &sandbox.Marks{File: filepath.Join(f.home(), "codex-mcp", "commands.lock")},
	})
	turn := box.Turn(tool.Context{
		Cwd: cwd, ApprovalPolicy: protocol.ApprovalOnRequest, Host: h,
		SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true},
	})
	t.Cleanup(turn.End)
	return turn
}
