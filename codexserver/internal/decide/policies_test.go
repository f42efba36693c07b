package decide_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestPolicies checks that testdata/policies.txt, to which docs/approvals.md leads, is what Exec, Patch and
// AfterDenial decide.
func TestPolicies(t *testing.T) {
	cell := func(p protocol.ApprovalPolicy, v decide.Verdict) string {
		switch v.Action {
		case decide.RunReadOnly:
			return "may, read-only"
		case decide.RunSandboxed:
			if decide.AfterDenial(p).Action == decide.Ask {
				return "may, in the sandbox; then asks"
			}
			return "may, in the sandbox"
		case decide.Run:
			return "**may**"
		case decide.Ask:
			return "asks"
		}
		return "never"
	}
	var want strings.Builder
	for _, p := range []protocol.ApprovalPolicy{"untrusted", "on-request", "on-failure", "never"} {
		for _, mode := range []protocol.SandboxMode{"read-only", "workspace-write", "danger-full-access"} {
			command := func(in decide.Input) string {
				in.Policy, in.Sandbox = p, mode
				return cell(p, decide.Exec(in))
			}
			patch := func(inside bool) string {
				return cell(p, decide.Patch(decide.PatchInput{Policy: p, Sandbox: mode, Inside: inside}))
			}
			known, other := []string{"ls"}, []string{"touch", "x"}
			fmt.Fprintf(&want, "| `%s` | `%s` | %s | %s | %s | %s | %s | %s |\n", p, mode,
				command(decide.Input{Command: known, SandboxAvailable: true}), command(decide.Input{Command: other, SandboxAvailable: true}),
				command(decide.Input{Command: other, SandboxAvailable: true, Escalated: true}), command(decide.Input{Command: other}), patch(true), patch(false))
		}
	}
	table, err := os.ReadFile("testdata/policies.txt")
	must.OK(t, err)
	if !strings.HasSuffix(string(table), "|---|---|---|---|---|---|---|---|\n"+want.String()) {
		t.Errorf("testdata/policies.txt has another table than\n%s", want.String())
	}
}
