//go:build unix

package tool_test

import (
	"context"
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
	for _, name := range []string{"bin/id", "bin/sh", "bin/bash", "bin/env", "bin/less", "run.sh", ".bash_profile", ".bashrc", ".profile", "rc"} {
		boxtest.Lay(t, work, name+"=#!/bin/sh\necho x >"+proof+"\n")
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
			turn := turnOf(tool.Options{Environ: env, Programs: &box.Programs{Temporary: []string{}}}, h, work, policy, protocol.SandboxWorkspaceWrite)
			members := escalated
			if policy == protocol.ApprovalUntrusted {
				members = ""
			}
			res := called(t, turn, shellCall(members, tt.argv...))
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
