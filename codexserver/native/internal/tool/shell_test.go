//go:build unix

package tool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestShell(t *testing.T) {
	dir := t.TempDir()
	boxtest.Lay(t, dir, "sub/")
	seconds := int64(60_000)
	sub := "sub"
	for _, tt := range []struct {
		name, want string
		call       tool.Call
	}{
		{"output", `{"output":"hi\n","metadata":{"exit_code":0,`, shellCall("", "echo", "hi")},
		{"exit code", `{"output":"","metadata":{"exit_code":3,`, shellCall("", "sh", "-c", "exit 3")},
		{"working folder", `{"output":"` + dir + `/sub\n",`, shellCall(`,"workdir":"sub"`, "pwd")},
		{"other name", `{"output":"hi\n",`, tool.Call{Name: "container.exec", Arguments: `{"command":["echo","hi"]}`}},
		{"other name and arguments", `{"output":"hi\n",`, tool.Call{Name: "container.exec", Arguments: `{"cmd":["echo","hi"],"timeout":10000}`}},
		{"a line by another name", `a b\n","metadata":{"exit_code":0,`, tool.Call{Name: "container.exec", Arguments: `{"cmd":"echo a  b | cat"}`}},
		{"both names", `{"output":"hi\n",`, tool.Call{Name: "shell", Arguments: `{"command":["echo","hi"],"cmd":["echo","no"]}`}},
		{"the model's own shell", `{"output":"` + dir + `/sub\n",`, tool.Call{Shell: &protocol.LocalShellAction{
			Command: []string{"pwd"}, WorkingDirectory: &sub, TimeoutMS: &seconds,
		}}},
		{"a line", `a b\n","metadata":{"exit_code":0,`, tool.Call{Name: "shell", Arguments: `{"command":"echo a  b | cat"}`}},
		{"timeout by another name", `{"output":"command timed out after `, shellCall(`,"timeout":50`, "sleep", "60")},
		{"no such program", "execution error: ", shellCall("", "no-such-program")},
		{"no such folder", "execution error: ", shellCall(`,"workdir":"nope"`, "pwd")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			turn, h := begin(t, dir)
			res, err := turn.Call(t.Context(), tt.call)
			if err != nil || !strings.Contains(res.Output, tt.want) {
				t.Errorf("%q, %v", res.Output, err)
			}
			end, ok := h.all[len(h.all)-1].(protocol.ExecCommandEnd)
			if !ok {
				t.Fatalf("the last event is %T", h.all[len(h.all)-1])
			}
			if strings.HasPrefix(tt.want, "execution") && (end.ExitCode != -1 || end.Stderr != "No such file or directory (os error 2)") {
				t.Errorf("end %+v", end)
			}
		})
	}
}

// TestTimeout checks how long a command may run, and what the model learns about that.
func TestTimeout(t *testing.T) {
	const late, whole = "command timed out after ", `{"output":"","metadata":{"exit_code":0,`
	for _, tt := range []struct {
		name    string
		timeout time.Duration // of the options
		members string
		argv    []string
		want    []string // in this order
	}{
		{"the default", 50 * time.Millisecond, "", []string{"sleep", "60"}, []string{late, "(timeout_ms can be up to 3600000)"}},
		{"the model's", time.Minute, `,"timeout_ms":50`, []string{"sleep", "60"}, []string{late, "(timeout_ms can be up to 3600000)"}},
		{"the longest", time.Minute, `,"timeout_ms":3600000`, []string{"true"}, []string{whole}},
		{"too long", time.Minute, `,"timeout_ms":3600001`, []string{"true"}, []string{"(timeout_ms was lowered to 3600000, the most that is allowed)"}},
		{"hardly any", time.Minute, `,"timeout_ms":1e-9`, []string{"sleep", "60"}, []string{late}},
		{"far too long", time.Minute, `,"timeout_ms":1e300`, []string{"true"}, []string{"(timeout_ms was lowered to 3600000, the most that is allowed)"}},
		{"a longer default", 2 * time.Hour, `,"timeout_ms":7200000`, []string{"true"}, []string{whole}},
		{"beyond a longer default", 2 * time.Hour, `,"timeout_ms":7200001`, []string{"true"}, []string{"was lowered to 7200000"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &host{}
			turn := turnOf(tool.Options{Timeout: tt.timeout}, h, t.TempDir(), "never", "danger-full-access")
			res := called(t, turn, shellCall(tt.members, tt.argv...))
			rest := res.Output
			for _, want := range tt.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Errorf("%q is not in %q", want, res.Output)
				}
				rest = after
			}
			// The note is for the model. A client sees what the command printed.
			if end, ok := h.all[len(h.all)-1].(protocol.ExecCommandEnd); !ok || strings.Contains(end.AggregatedOutput+end.FormattedOutput, "timeout_ms") {
				t.Errorf("end %+v", h.all[len(h.all)-1])
			}
		})
	}
	offer := tool.New(tool.Options{Timeout: 90 * time.Second}).Offer(false)
	if text := string(offer[0].Parameters); !strings.Contains(text, "90000 by default, at most 3600000") {
		t.Errorf("the model is offered %s", text)
	}
}

// TestLineWithoutBash checks that a line runs in sh where there is no bash, and that the tool says so.
func TestLineWithoutBash(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	for name, want := range map[string][]string{"bash": {"bash", "-lc", "ls"}, "sh": {"sh", "-c", "ls"}, "": {"bash", "-lc", "ls"}} {
		programs := t.TempDir()
		if name != "" {
			must.OK(t, os.Symlink(sh, filepath.Join(programs, name)))
		}
		h := &host{answer: elicit.Denied}
		box := newBox(tool.Options{Environ: []string{"PATH=" + programs}})
		turn := box.Turn(tool.Context{Cwd: t.TempDir(), ApprovalPolicy: protocol.ApprovalUntrusted, SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, Host: h})
		called(t, turn, tool.Call{ID: "c1", Name: "shell", Arguments: `{"command":"ls"}`})
		if asked := h.asked(); len(asked) != 1 || !slices.Equal(asked[0].Command, want) {
			t.Errorf("with %q: asked %+v, want %q", name, asked, want)
		}
		offer := string(box.Offer(false)[0].Parameters)
		if says := fmt.Sprintf(`[\"%s\",\"%s\",SCRIPT]`, want[0], want[1]); !strings.Contains(offer, says) || strings.Contains(offer, "no bash") != (name == "sh") {
			t.Errorf("with %q the model is offered %s", name, offer)
		}
	}
}

func TestShellInterrupted(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	turn, h := begin(t, t.TempDir())
	turn.Acting = func() error { h.add(nil, "acting"); return nil }
	turn.Host = canceller{h, func() { cancel(cause) }}
	_, err := turn.Call(ctx, shellCall("", "sh", "-c", "echo x; sleep 60"))
	if !errors.Is(err, cause) || h.steps() != "acting, begin" {
		t.Errorf("%v after %s", err, h.steps())
	}
	if _, err := turn.Call(ctx, shellCall("", "true")); !errors.Is(err, cause) {
		t.Errorf("afterwards: %v", err)
	}
}

// canceller cancels the context at the first output.
type canceller struct {
	*host
	cancel func()
}

func (c canceller) Emit(m protocol.EventMsg) {
	if _, ok := m.(protocol.ExecCommandOutputDelta); ok {
		c.cancel()
	}
	c.host.Emit(m)
}

func TestShellWithProfile(t *testing.T) {
	home := t.TempDir()
	boxtest.Lay(t, home, ".profile=export FROM_PROFILE=yes\n")
	h := &host{}
	turn := turnOf(tool.Options{Environ: append(environ, "HOME="+home), Shell: "/bin/sh"}, h, home, "never", "danger-full-access")
	res, err := turn.Call(t.Context(), shellCall("", "sh", "-c", `echo $FROM_PROFILE "$1"`, "sh", "a 'b' $c"))
	if want := `{"output":"yes a 'b' $c\n",`; err != nil || !strings.HasPrefix(res.Output, want) {
		t.Errorf("%s, %v", res.Output, err)
	}
	if begin, ok := h.all[0].(protocol.ExecCommandBegin); !ok || begin.Command[0] != "sh" {
		t.Errorf("the user is shown %+v", h.all[0])
	}
}

// TestReadOnlyCommand checks which commands are announced as such that can change no file.
func TestReadOnlyCommand(t *testing.T) {
	for _, tt := range []struct {
		command string
		policy  protocol.ApprovalPolicy
		mode    protocol.SandboxMode
		want    bool
	}{
		{"make", "never", "read-only", true},
		{"ls", "untrusted", "workspace-write", true}, // known as safe, and so without writable folders
		{"make", "never", "workspace-write", false},
		{"ls", "never", "danger-full-access", false},
	} {
		h := &host{}
		turn := turnOf(tool.Options{Sandbox: &fakeSandbox{host: h}}, h, t.TempDir(), tt.policy, tt.mode)
		called(t, turn, shellCall("", tt.command))
		i := slices.IndexFunc(h.all, func(m protocol.EventMsg) bool { _, begins := m.(protocol.ExecCommandBegin); return begins })
		if i < 0 || h.all[i].(protocol.ExecCommandBegin).ReadOnly != tt.want {
			t.Errorf("%+v: %+v", tt, h.all)
		}
	}
}

// TestPlantedProgram asks about commands whose programs lie where commands may write: the question names the program.
func TestPlantedProgram(t *testing.T) {
	dir := t.TempDir()
	system := t.TempDir()
	boxtest.Lay(t, dir, "run.sh=#!/bin/sh\n", "venv/bin/tool=#!/bin/sh\n", "rel/here=#!/bin/sh\n")
	boxtest.Lay(t, system, "linked -> /bin/echo") // it is also a folder for temporary files, where commands may write
	for _, mode := range protocol.SandboxModes() {
		for _, tt := range []struct {
			argv    []string
			program string
		}{
			{[]string{"sh", "-c", "true && uname"}, ""},
			{[]string{"/bin/sh", "-c", "(./run.sh)"}, ""}, // more than plain commands
			{[]string{"./run.sh"}, filepath.Join(dir, "run.sh")},
			{[]string{"tool"}, filepath.Join(dir, "venv/bin/tool")},
			{[]string{"sh", "-c", "true; ./run.sh"}, filepath.Join(dir, "run.sh")},
			{[]string{"sh", "-c", "true; tool"}, filepath.Join(dir, "venv/bin/tool")},
			{[]string{"sh", "-c", "true; here"}, filepath.Join(dir, "rel/here")}, // by a relative folder in PATH
			{[]string{"sh", "./run.sh"}, ""},
			{[]string{filepath.Join(system, "linked")}, filepath.Join(system, "linked")},
		} {
			h := &host{answer: elicit.Approved}
			turn := turnOf(tool.Options{Environ: []string{"PATH=" + dir + "/venv/bin:rel:/usr/bin:/bin", "TMPDIR=" + os.TempDir()}}, h, dir, "untrusted", mode)
			turn.SandboxPolicy = protocol.SandboxPolicy{Mode: mode} // folders for temporary files are writable
			called(t, turn, shellCall("", tt.argv...))
			for _, req := range h.asked() {
				must.Equal(t, fmt.Sprintf("%s %q: asked about", mode, tt.argv), isIn(tt.program), req.Notes)
			}
		}
	}
}

// isIn returns what a question says of programs that commands may write, which are in one folder.
func isIn(paths ...string) (notes []string) {
	if len(paths) == 0 || paths[0] == "" {
		return nil
	}
	folder, names := filepath.Dir(paths[0]), []string{}
	for _, path := range paths {
		names = append(names, `"`+filepath.Base(path)+`"`)
	}
	return []string{"It may start " + strings.Join(names, ", ") + " from `" + folder + "`, where commands can write."}
}

// TestPlantedSpelled spells the name of a planted program in all ways. Tool is nowhere else, and git comes before another
// one, so that it may be started by a spelling of which nobody can read the name.
func TestPlantedSpelled(t *testing.T) {
	top := boxtest.FolderOutsideTmp(t)
	in := func(name string) string { return filepath.Join(top, name) }
	for _, name := range []string{"work/bin/tool", "work/bin/git", "work/bin/other", "sys/git", "sys/late", "end/late", "end/bash"} {
		boxtest.Lay(t, top, name+"=#!/bin/sh\n")
	}
	boxtest.Lay(t, top, "work/bin/data/", "work/x/git=no program", "sys/data=#!/bin/sh\n")
	must.OK(t, os.Chmod(in("work/x/git"), 0o600))
	notes := func(path string, argv ...string) []string {
		t.Helper()
		h := &host{answer: elicit.Denied}
		o := tool.Options{Environ: []string{"PATH=" + path}, Programs: &box.Programs{Temporary: []string{}}, Sandbox: &fakeSandbox{host: h}}
		called(t, turnOf(o, h, in("work"), "on-request", "workspace-write"), shellCall(escalated, argv...))
		if len(h.asked()) != 1 {
			t.Fatalf("%q: %s", argv, h.steps())
		}
		return h.asked()[0].Notes
	}
	path := in("work/bin") + ":" + in("sys") + ":" + in("end")
	git, both := isIn(in("work/bin/git")), isIn(in("work/bin/tool"), in("work/bin/git"))
	spellings := []string{
		"tool", "tool push > /dev/null", "X=tool; $X push", "T=1 tool push", "echo $(tool push)", "echo `tool`", "<(tool)", "env tool push", "timeout 5 tool push", "echo a | xargs tool",
		"echo a | xargs -P2 -n1 tool", "cd /tmp && tool", "(tool)", "{ tool; }", "if tool; then :; fi", "! tool", "tool&", "'tool' push", `"tool" push`, `t"oo"l push`, `t'o'o$'l'`, `\tool`, "to\\\nol",
		`$"tool"`, "eval 'to'ol push", `eval "sh -c 'tool push'"`, "find . -exec tool {} +", "env -Stool", "sudo -- tool", "nohup tool", "exec tool", "command tool",
		"trap tool EXIT", "alias x=tool; x", "f() { tool; }; f", "cat <<E | sh\ntool\nE", "sh <<<tool", "python3 -c 'import os; os.system(\"tool\")'", "awk 'BEGIN{system(\"tool\")}'",
		"hg --config ui.editor=tool log", "make CC=tool", "HGEDITOR='tool -x' hg log", "watch -n1 tool", "A=(tool); ${A[0]}", "${X:-tool}", "case x in x) tool;; esac", "echo \\\n; tool",
	}
	for _, script := range spellings {
		must.Equal(t, script, both, notes(path, "bash", "-c", script))
	}
	for _, argv := range [][]string{{"sh", "-ec", "tool"}, {"sh", "-c", "-e", "tool"}, {"env", "A=b", "tool"}, {"xargs", "tool"}, {in("sys/git"), "--upload-pack=tool"}, {"tool"}} {
		must.Equal(t, fmt.Sprintf("%q", argv), both, notes(path, argv...))
	}
	t.Logf("%d spellings", len(spellings)+6)
	for _, script := range []string{"ls", "g${X}it push", "cat x/tool", "./data", "toolbox; mytool; TOOL; to ol", in("work") + "/x/tool", "$(printf 'to%s' ol)", `$'\x74ool'`} {
		must.Equal(t, script, git, notes(path, "bash", "-c", script))
	}
	for _, tt := range []struct{ name, path, script string }{
		{"the other one comes first", in("sys") + ":" + in("work/bin"), "git push; late"},
		{"a folder that commands cannot write", in("sys") + ":" + in("end"), "git push; late; tool"},
		{"the same folder twice", in("work/bin") + ":" + in("work/bin/../bin") + ":" + in("end"), "ls"},
		{"no program", in("work/x") + ":" + in("sys"), "git push"},
		{"other names", in("work/bin") + ":" + in("end"), "late push; bash"},
		{"no PATH", "", "git push; tool"},
	} {
		must.Equal(t, tt.name, isIn(), notes(tt.path, "bash", "-c", tt.script))
	}

	// Many programs, and more than are compared.
	var many, words []string
	for i := range 10_000 {
		many, words = append(many, fmt.Sprintf("work/many/p%05d=#!/bin/sh\n", i)), append(words, fmt.Sprint("w", i))
	}
	boxtest.Lay(t, top, append(many, "sys/p00000=", "sys/p00002=", "sys/p00003=", "sys/p00009=", "sys/p0=")...)
	path = in("work/many") + ":" + in("sys")
	begun := time.Now()
	where := " from `" + in("work/many") + "`, where commands can write."
	must.Equal(t, "many", []string{`It may start "p00007", "p00000", "p00002" and 2 more` + where}, notes(path, "bash", "-c", "p00007 | p0 > x"))
	must.Equal(t, "all", []string{"It may start `\"*\"`, \"p00000\", \"p00002\" and 2 more" + where}, notes(path, "bash", "-c", strings.Join(words, " ")))
	t.Logf("two questions about 10,000 programs: %v", time.Since(begun))
}

// TestStoppedReadOnly checks that the model learns why a command that is known to be safe
// was stopped, and that the user is not asked to run it outside of the sandbox.
func TestStoppedReadOnly(t *testing.T) {
	h := &host{answer: elicit.Approved}
	turn := turnOf(tool.Options{Sandbox: &fakeSandbox{host: h, stops: 1}}, h, "/", "untrusted", "danger-full-access")
	res, err := turn.Call(t.Context(), shellCall("", "false"))
	if err != nil || h.steps() != "begin, confined to read-only, end 1" || !strings.Contains(res.Output, "read-only sandbox without network, which stopped it") {
		t.Errorf("%s: %s, %v", h.steps(), res.Output, err)
	}
}

// ruling is a host with rules. A person denies what they leave open.
type ruling struct {
	*host
	rules approval.Rules
}

func (r ruling) Ask(ctx context.Context, s approval.Subject) elicit.Outcome {
	d := approve.New(&approve.Options{Rules: r.rules}, nil).Decide(ctx, &approval.Request{Subject: s, Question: &elicit.Question{}}, false)
	if d.By != approval.ByRule {
		r.host.add(nil, "person")
	}
	return d.Outcome
}

// TestRulesEnviron has what commands get outside the sandbox by the rules of the page, which stand-ins print, and by others.
// Programs that commands have planted, and that come first in the PATH, do not start, and not by their paths.
func TestRulesEnviron(t *testing.T) {
	home, top := t.TempDir(), boxtest.FolderOutsideTmp(t)
	_, page, _ := strings.Cut(string(must.Get(os.ReadFile(filepath.FromSlash("../../../../docs/rules.md")))(t)), "### In the sandbox, and outside")
	_, page, _ = strings.Cut(page, "```toml\n")
	page, _, _ = strings.Cut(page, "```")
	boxtest.Lay(t, home, "codex-mcp.toml="+page)
	settings, _, err := config.LoadSettings(home, nil)
	must.OK(t, err)
	rules := approval.Rules{Allow: []approval.Rule{
		{Command: []string{"plain"}, Outside: true}, {Command: []string{"./plain"}, Outside: true}, {Command: []string{"fails"}, Outside: true, Environ: []string{"GH_TOKEN"}}, {Command: []string{"both"}, Outside: true, Environ: []string{"GH_HOST"}},
		{Command: []string{"both", "x"}, Outside: true, Environ: []string{"GH_TOKEN", "P_KEY", "NONE", "PATH"}},
	}}
	for _, rule := range settings.Approvals.Allow {
		rules.Allow = append(rules.Allow, rule.Rule)
	}
	for name := range strings.FieldsSeq("git gh aws docker kubectl go npm plain both") {
		boxtest.Lay(t, top, "sys/"+name+"=#!/bin/sh\n/usr/bin/env\n")
	}
	boxtest.Lay(t, top, "sys/fails=#!/bin/sh\necho set the variable NPM_TOKEN\nexit 1\n")
	for name := range strings.FieldsSeq("gh plain both fails") {
		boxtest.Lay(t, top, "work/"+name+"=#!/bin/sh\ntouch "+top+"/proof\n")
	}
	path := "PATH=" + filepath.Join(top, "work") + ":" + filepath.Join(top, "sys") + ":/usr/bin:/bin"
	client := []string{path, "HOME=" + top, "MAKEFILES=x", "GOENV=x", "GOFLAGS=x", "LANG=C"}
	for name := range strings.FieldsSeq("SSH_AUTH_SOCK GH_TOKEN GH_HOST AWS_PROFILE AWS_REGION DOCKER_HOST DOCKER_CONTEXT KUBECONFIG GOPROXY GOPRIVATE NPM_TOKEN") {
		client = append(client, name+"=of "+name)
	}
	for i := range 99 {
		client = append(client, fmt.Sprintf("A%02d=x", i))
	}
	environ := append(slices.DeleteFunc(slices.Clone(client), func(entry string) bool { return strings.Contains(entry, "TOKEN") }), "GIT_SSH=given")
	call := func(argv ...string) (got []string, output string) {
		t.Helper()
		want := "begin, end"
		if strings.Contains(argv[len(argv)-1], "./") {
			want = "refused"
		}
		h := ruling{&host{answer: elicit.Denied}, rules}
		o := tool.Options{Environ: environ, Set: []string{"GIT_SSH"}, Client: func() []string { return slices.Sorted(slices.Values(client)) }, Programs: &box.Programs{Temporary: []string{}}}
		res := called(t, turnOf(o, h, filepath.Join(top, "work"), "on-request", "workspace-write"), shellCall(escalated, argv...))
		if _, err := os.Stat(top + "/proof"); err == nil || !strings.HasPrefix(h.steps(), want) {
			t.Fatalf("%q: %s: %s, a planted program ran: %t", argv, h.steps(), res.Output, err == nil)
		}
		for _, entry := range client {
			if name, value, _ := strings.Cut(entry, "="); strings.Contains(res.Output, name+"="+value+`\n`) && !strings.HasPrefix(name, "PATH") {
				got = append(got, name)
			}
		}
		if strings.Contains(res.Output, `GIT_SSH=given\n`) {
			got = append(got, "GIT_SSH")
		}
		return got, res.Output
	}
	if n := len(settings.Approvals.Allow); n != 7 {
		t.Fatalf("the page has %d rules", n)
	}
	for _, rule := range settings.Approvals.Allow {
		got, output := call(append(rule.Command, "more")...)
		must.Equal(t, rule.Command[0], slices.Concat([]string{"HOME", "LANG"}, rule.Environ, []string{"GIT_SSH"}), got)
		if strings.Contains(output, "a rule of the user") || !strings.Contains(output, `PATH=`+filepath.Join(top, "sys")+":") {
			t.Errorf("%s: %s", rule.Command[0], output)
		}
	}
	for script, want := range map[string][]string{
		"plain": {}, "both": {"GH_HOST"}, "both x": {"GH_TOKEN", "GH_HOST"}, "both x && plain": {}, "both x && both": {"GH_HOST"}, "both && both x": {"GH_HOST"}, "gh pr && both x": {"GH_TOKEN", "GH_HOST"},
		"aws s3 ls && gh pr": {},
	} {
		got, _ := call("bash", "-lc", script)
		must.Equal(t, script, slices.Concat([]string{"HOME", "LANG"}, want, []string{"GIT_SSH"}), got)
	}
	_, output := call("fails")
	const says = "(a rule of the user let it run outside the sandbox without these variables, which env of the rule can name: A00, A01, "
	if !strings.Contains(output, says) || !strings.Contains(output, "A98, AWS_PROFILE and 12 more)") || strings.Contains(output, "of GH_HOST") || strings.Contains(output, "GH_TOKEN") {
		t.Error(output)
	}
	for _, argv := range [][]string{{"./plain"}, {"bash", "-lc", "plain; ./plain"}} {
		if _, output := call(argv...); !strings.Contains(output, "a rule lets it run outside the sandbox, but "+filepath.Join(top, "work")+"/") {
			t.Errorf("%q: %s", argv, output)
		}
	}
}
