package policy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestSecurityPage checks that the first table of SECURITY.md is what Decide, DecidePatch and
// AfterDenial decide.
func TestSecurityPage(t *testing.T) {
	cell := func(p protocol.ApprovalPolicy, v policy.Verdict) string {
		switch v.Action {
		case policy.RunReadOnly:
			return "may, read-only"
		case policy.RunSandboxed:
			if policy.AfterDenial(p).Action == policy.Ask {
				return "may, in the sandbox; then asks"
			}
			return "may, in the sandbox"
		case policy.Run:
			return "**may**"
		case policy.Ask:
			return "asks"
		}
		return "never"
	}
	var want strings.Builder
	for _, p := range []protocol.ApprovalPolicy{"untrusted", "on-request", "on-failure", "never"} {
		for _, mode := range []protocol.SandboxMode{"read-only", "workspace-write", "danger-full-access"} {
			decide := func(in policy.Input) string {
				in.Policy, in.Sandbox = p, mode
				return cell(p, policy.Decide(in))
			}
			patch := func(inside bool) string {
				return cell(p, policy.DecidePatch(policy.PatchInput{Policy: p, Sandbox: mode, Inside: inside}))
			}
			known, other := []string{"ls"}, []string{"touch", "x"}
			fmt.Fprintf(&want, "| `%s` | `%s` | %s | %s | %s | %s | %s | %s |\n", p, mode,
				decide(policy.Input{Command: known, SandboxAvailable: true}), decide(policy.Input{Command: other, SandboxAvailable: true}),
				decide(policy.Input{Command: other, SandboxAvailable: true, Escalated: true}), decide(policy.Input{Command: other}), patch(true), patch(false))
		}
	}
	page, err := os.ReadFile("../../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "|---|---|---|---|---|---|---|---|\n"+want.String()+"\n") {
		t.Errorf("SECURITY.md has another table than\n%s", want.String())
	}
}
