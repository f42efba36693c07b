//go:build unix

package tool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestRulesThatAskSeeThrough hides a program behind others, where the policy would run everything.
func TestRulesThatAskSeeThrough(t *testing.T) {
	rules := [][]string{{"touch"}, {"git", "push"}}
	for _, argv := range [][]string{
		{"touch", "made"}, {"/usr/bin/touch", "made"}, {"env", "touch", "made"}, {"nohup", "touch", "made"}, {"timeout", "5", "touch", "made"},
		{"nice", "touch", "made"}, {"stdbuf", "-o0", "touch", "made"}, {"setsid", "-w", "touch", "made"}, {"find", ".", "-maxdepth", "0", "-exec", "touch", "made", ";"},
		{"git", "-C", ".", "push"}, {"git", "--no-pager", "push"},
	} {
		checkAsked(t, rules, argv)
	}
	for _, script := range []string{
		"command touch made", "builtin command touch made", "exec touch made", "time touch made", "eval 'touch made'", "eval touch made", "$'touch' made",
		`$'\x74ouch' made`, "x=touch; $x made", "$(echo touch) made", "echo made | xargs touch", "/usr/bin/touc? made", "t''ouch made", `\touch made`,
		"bash <<EOF\ntouch made\nEOF", "bash <<< 'touch made'", "echo touch made | sh", "bash -c 'bash -c \"touch made\"'", "f() { touch made; }; f", "trap 'touch made' EXIT",
		"git -C . push", "git $X push", "hash -p /usr/bin/touch x; x made",
	} {
		checkAsked(t, rules, []string{"bash", "-c", script})
	}
}

// checkAsked checks that a command that would make a file is asked about under never with full access.
func checkAsked(t *testing.T, rules [][]string, argv []string) {
	t.Helper()
	dir, h := t.TempDir(), &host{answer: elicit.Denied}
	turn := newBox(tool.Options{Environ: environ, Ask: rules}).Turn(tool.Context{
		Cwd: dir, ApprovalPolicy: protocol.ApprovalNever, SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxDangerFullAccess}, Host: h,
	})
	if _, err := turn.Call(t.Context(), shellCall(t, "", argv...)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil || h.steps() != "ask: a rule of the user asks about this command" {
		t.Errorf("%q: %s; made: %v", argv, h.steps(), err)
	}
}

// ruling is a host with rules. A person denies what they leave open.
type ruling struct {
	*host
	rules approval.Rules
}

func (r ruling) ApproveExec(ctx context.Context, q protocol.ExecApprovalRequest) elicit.Outcome {
	d := approve.New(&approve.Options{Rules: r.rules}, nil).Decide(ctx, &approval.Request{Event: q, Question: &elicit.Question{}}, false)
	if d.By != approval.ByRule {
		r.host.add(nil, "person")
	}
	return d.Outcome
}

// TestRulesOutside has rules that let commands out of the sandbox, where commands have planted programs and
// variables lead to them. None of these starts.
func TestRulesOutside(t *testing.T) {
	top := boxtest.Folder(t)
	work, proof := filepath.Join(top, "work"), filepath.Join(top, "proof")
	plant := func(name, text string) {
		file := filepath.Join(work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(text), 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	evil := "#!/bin/sh\necho x >" + proof + "\n"
	for _, name := range []string{"bin/id", "bin/sh", "bin/bash", "bin/env", "bin/less", "run.sh", ".bash_profile", ".bashrc", ".profile", "rc"} {
		plant(name, evil)
	}
	env := []string{
		"PATH=bin:" + work + "/bin:/usr/bin:/bin", "HOME=" + work, "BASH_ENV=" + work + "/rc", "ENV=" + work + "/rc", "PAGER=" + work + "/run.sh", "GIT_SSH=" + work + "/run.sh",
		"LANG=C", "PROMPT_COMMAND=" + work + "/run.sh", "BASH_FUNC_id%%=() { " + work + "/run.sh; }",
	}
	const ran = "begin, end 0"
	for _, tt := range []struct {
		name string
		argv []string
		want string
	}{
		{"first in PATH", []string{"id"}, ran},
		{"in a script", []string{"bash", "-lc", "id && id -u"}, ran},
		{"what it has", []string{"env"}, ran},
		{"a profile", []string{"sh", "-c", "id"}, ran},
		{"by its path", []string{"./run.sh"}, "refused"},
		{"by its path in a script", []string{"bash", "-lc", "id; ./run.sh"}, "refused"},
		{"more than a rule allows", []string{"bash", "-lc", "id; uname"}, "person"},
		{"more than words", []string{"bash", "-lc", "id >x"}, "person"},
	} {
		for _, policy := range []protocol.ApprovalPolicy{protocol.ApprovalOnRequest, protocol.ApprovalUntrusted} {
			h := ruling{&host{}, approval.Rules{Allow: []approval.Rule{
				{Command: []string{"id"}, Outside: true}, {Command: []string{"env"}, Outside: true}, {Command: []string{"./run.sh"}, Outside: true},
			}}}
			h.host.answer = elicit.Denied
			turn := newBox(tool.Options{Environ: env, Programs: &box.Programs{Temporary: []string{}}}).Turn(tool.Context{
				Cwd: work, ApprovalPolicy: policy, Host: h,
				SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true},
			})
			members := escalated
			if policy == protocol.ApprovalUntrusted {
				members = ""
			}
			res, err := turn.Call(t.Context(), shellCall(t, members, tt.argv...))
			if err != nil {
				t.Fatal(err)
			}
			if h.steps() != tt.want {
				t.Errorf("%s, %s: %s, want %s; %s", policy, tt.name, h.steps(), tt.want, res.Output)
			}
			if _, err := os.Stat(proof); err == nil {
				t.Fatalf("%s, %s: a planted program ran: %s", policy, tt.name, res.Output)
			}
			if tt.name == "what it has" && (strings.Contains(res.Output, work+"/") || !strings.Contains(res.Output, "LANG=C")) {
				t.Errorf("%s: %s", policy, res.Output)
			}
			if tt.want == "refused" && !strings.Contains(res.Output, "a rule lets it run outside the sandbox, but "+work+"/") {
				t.Errorf("%s, %s: %s", policy, tt.name, res.Output)
			}
		}
	}
}
