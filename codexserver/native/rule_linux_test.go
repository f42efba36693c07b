package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// ruleHost is a host that asks rules and then refuses.
type ruleHost struct {
	*host
	rules approval.Rules
	trace []string
}

func (h *ruleHost) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	board := board.New(&board.Options{Rules: h.rules}, nil)
	d := board.Decide(ctx, &approval.Request{Event: r, Question: &elicit.Question{}})
	if d.By != approval.ByRule {
		h.trace = append(h.trace, "asked")
	}
	return d.Outcome
}

// TestRuleKeepsInTheSandbox runs a git command that a rule allows, in a repository whose
// configuration starts a program.
func TestRuleKeepsInTheSandbox(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, policy, mode string
		outside, escalated bool
		want               string // how it ran
	}{
		{"inside", "untrusted", "workspace-write", false, false, "inside, asked"},
		{"read-only", "untrusted", "read-only", false, false, "inside, asked"},
		{"outside", "untrusted", "workspace-write", true, false, "outside"},
		{"without a sandbox", "untrusted", "danger-full-access", false, false, "inside, asked"},
		{"without a sandbox, outside", "untrusted", "danger-full-access", true, false, "outside"},
		{"escalated", "on-request", "workspace-write", false, true, "asked"},
		{"escalated, outside", "on-request", "workspace-write", true, true, "outside"},
		{"after a failure", "on-failure", "workspace-write", false, false, "inside, asked"},
		{"after a failure, outside", "on-failure", "workspace-write", true, false, "inside, outside"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call := map[string]any{"command": []string{"git", "add", "."}}
			if tt.escalated {
				call["with_escalated_permissions"] = true
			}
			b := setup(t, "", native.Limits{}, providertest.Call(providertest.Tool("c1", "shell", call)), providertest.Say("ok"))
			outside := t.TempDir()
			servertest.Git(t, b.cwd, "init", "-q")
			// The program fails in the sandbox, and so does git.
			program := filepath.Join(b.cwd, "program")
			script := fmt.Sprintf("#!/bin/sh\ntouch %s/ran || kill $PPID\n", outside)
			config := filepath.Join(b.cwd, ".git/config")
			text, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			for path, text := range map[string]string{program: script, config: string(text) + "[core]\n\tfsmonitor = " + program + "\n"} {
				if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			h := &ruleHost{host: &host{}, rules: approval.Rules{Allow: []approval.Rule{{Command: []string{"git", "add"}, Outside: tt.outside}}}}
			h.on = func(m protocol.EventMsg) {
				if _, is := m.(protocol.ExecCommandEnd); !is {
					return
				}
				if _, err := os.Lstat(filepath.Join(outside, "ran")); err == nil {
					h.trace = append(h.trace, "outside")
				} else {
					h.trace = append(h.trace, "inside")
				}
			}
			conv, err := b.engine.Start(t.Context(), protocol.Config{
				Cwd: b.cwd, ApprovalPolicy: protocol.ApprovalPolicy(tt.policy), Sandbox: protocol.SandboxMode(tt.mode),
				Overrides: map[string]json.RawMessage{"sandbox_workspace_write.exclude_slash_tmp": json.RawMessage("true")},
			}, h)
			if err != nil {
				t.Fatal(err)
			}
			defer conv.Close()
			turn(t, conv, say("go"))
			if got := strings.Join(h.trace, ", "); got != tt.want {
				t.Errorf("%s, want %s; %q", got, tt.want, h.take())
			}
		})
	}
}
