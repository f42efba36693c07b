package decide_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestDecide has what the table of policies leaves out. [TestPolicies] compares the rest.
func TestDecide(t *testing.T) {
	const readOnly, write, full = protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess
	plain, safe, git := []string{"touch", "x"}, []string{"ls"}, []string{"git", "status"}
	for _, tt := range []struct {
		name string
		in   decide.Input
		want decide.Action
	}{
		{"no policy", decide.Input{Sandbox: full, Command: safe, SandboxAvailable: true}, decide.Refuse},
		{"an unknown policy", decide.Input{Policy: "sometimes", Sandbox: readOnly, Command: safe, SandboxAvailable: true, SessionApproved: true}, decide.Refuse},
		{"no sandbox mode", decide.Input{Policy: "never", Command: safe, SandboxAvailable: true}, decide.Refuse},
		{"an unknown sandbox mode", decide.Input{Policy: "on-request", Sandbox: "none", Command: safe, SandboxAvailable: true, SessionApproved: true}, decide.Refuse},
		{"escalated without need", decide.Input{Policy: "untrusted", Sandbox: full, Command: safe, SandboxAvailable: true, Escalated: true}, decide.Refuse},
		{"escalated, known to be safe", decide.Input{Policy: "on-request", Sandbox: write, Command: safe, SandboxAvailable: true, Escalated: true}, decide.Ask},
		{"known to be safe without a sandbox", decide.Input{Policy: "untrusted", Sandbox: full, Command: safe}, decide.Ask},
		{"without a sandbox, in full access", decide.Input{Policy: "on-failure", Sandbox: full, Command: plain}, decide.Run},
		{"approved for the session", decide.Input{Policy: "untrusted", Sandbox: write, Command: plain, SandboxAvailable: true, SessionApproved: true}, decide.RunSandboxed},
		{"approved for the session, in full access", decide.Input{Policy: "untrusted", Sandbox: full, Command: plain, SessionApproved: true}, decide.Run},
		{"approved for the session, escalated", decide.Input{Policy: "on-request", Sandbox: write, Command: plain, SandboxAvailable: true, SessionApproved: true, Escalated: true}, decide.Ask},
		{"approved for the session, without a sandbox", decide.Input{Policy: "never", Sandbox: readOnly, Command: plain, SessionApproved: true}, decide.Refuse},
		{"git", decide.Input{Policy: "untrusted", Sandbox: readOnly, Command: git, SandboxAvailable: true}, decide.RunReadOnly},
		{"git, by the strict rules", decide.Input{Policy: "untrusted", Sandbox: readOnly, Command: git, SandboxAvailable: true, Strict: true}, decide.Ask},
		{"code of this program that reads", decide.Input{Policy: "untrusted", Sandbox: readOnly, Command: plain, SandboxAvailable: true, Reads: true}, decide.RunReadOnly},
		{"code that reads the working folder", decide.Input{Policy: "untrusted", Sandbox: readOnly, SandboxAvailable: true, Reads: true, Near: true}, decide.RunReadOnly},
		{"code that reads the working folder, without a sandbox", decide.Input{Policy: "never", Sandbox: readOnly, Reads: true, Near: true}, decide.Run},
		{"code that reads elsewhere, without a sandbox", decide.Input{Policy: "untrusted", Sandbox: readOnly, Reads: true}, decide.Ask},
		{"a command in the working folder, without a sandbox", decide.Input{Policy: "never", Sandbox: readOnly, Command: safe, Near: true}, decide.Refuse},
	} {
		if got := decide.Exec(tt.in); got.Action != tt.want || got.Action == decide.Refuse && got.Reason == "" {
			t.Errorf("%s: %v (%s), want %v", tt.name, got.Action, got.Reason, tt.want)
		}
	}
	for _, in := range []decide.PatchInput{{Policy: "sometimes", Sandbox: full, Inside: true}, {Policy: "never", Sandbox: readOnly, Inside: true}, {Policy: "never", Sandbox: "none", Inside: true}} {
		if got := decide.Patch(in); got.Action != decide.Refuse {
			t.Errorf("a patch, %+v: %v", in, got.Action)
		}
	}
}
