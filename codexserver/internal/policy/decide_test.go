package policy_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestDecide has what the table of SECURITY.md leaves out. [TestSecurityPage] compares the rest.
func TestDecide(t *testing.T) {
	const readOnly, write, full = protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess
	plain, safe, git := []string{"touch", "x"}, []string{"ls"}, []string{"git", "status"}
	for _, tt := range []struct {
		name string
		in   policy.Input
		want policy.Action
	}{
		{"no policy", policy.Input{Sandbox: full, Command: safe, SandboxAvailable: true}, policy.Refuse},
		{"an unknown policy", policy.Input{Policy: "sometimes", Sandbox: readOnly, Command: safe, SandboxAvailable: true, SessionApproved: true}, policy.Refuse},
		{"no sandbox mode", policy.Input{Policy: "never", Command: safe, SandboxAvailable: true}, policy.Refuse},
		{"an unknown sandbox mode", policy.Input{Policy: "on-request", Sandbox: "none", Command: safe, SandboxAvailable: true, SessionApproved: true}, policy.Refuse},
		{"escalated without need", policy.Input{Policy: "untrusted", Sandbox: full, Command: safe, SandboxAvailable: true, Escalated: true}, policy.Refuse},
		{"escalated, known to be safe", policy.Input{Policy: "on-request", Sandbox: write, Command: safe, SandboxAvailable: true, Escalated: true}, policy.Ask},
		{"known to be safe without a sandbox", policy.Input{Policy: "untrusted", Sandbox: full, Command: safe}, policy.Ask},
		{"without a sandbox, in full access", policy.Input{Policy: "on-failure", Sandbox: full, Command: plain}, policy.Run},
		{"approved for the session", policy.Input{Policy: "untrusted", Sandbox: write, Command: plain, SandboxAvailable: true, SessionApproved: true}, policy.RunSandboxed},
		{"approved for the session, in full access", policy.Input{Policy: "untrusted", Sandbox: full, Command: plain, SessionApproved: true}, policy.Run},
		{"approved for the session, escalated", policy.Input{Policy: "on-request", Sandbox: write, Command: plain, SandboxAvailable: true, SessionApproved: true, Escalated: true}, policy.Ask},
		{"approved for the session, without a sandbox", policy.Input{Policy: "never", Sandbox: readOnly, Command: plain, SessionApproved: true}, policy.Refuse},
		{"git", policy.Input{Policy: "untrusted", Sandbox: readOnly, Command: git, SandboxAvailable: true}, policy.RunReadOnly},
		{"git, by the strict rules", policy.Input{Policy: "untrusted", Sandbox: readOnly, Command: git, SandboxAvailable: true, Strict: true}, policy.Ask},
		{"code of this program that reads", policy.Input{Policy: "untrusted", Sandbox: readOnly, Command: plain, SandboxAvailable: true, Reads: true}, policy.RunReadOnly},
	} {
		if got := policy.Decide(tt.in); got.Action != tt.want || got.Action == policy.Refuse && got.Reason == "" {
			t.Errorf("%s: %v (%s), want %v", tt.name, got.Action, got.Reason, tt.want)
		}
	}
	for _, in := range []policy.PatchInput{{Policy: "sometimes", Sandbox: full, Inside: true}, {Policy: "never", Sandbox: readOnly, Inside: true}, {Policy: "never", Sandbox: "none", Inside: true}} {
		if got := policy.DecidePatch(in); got.Action != policy.Refuse {
			t.Errorf("a patch, %+v: %v", in, got.Action)
		}
	}
}
