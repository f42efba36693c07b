package tool_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestHostsTip says which questions have the sentence about the network by the host.
func TestHostsTip(t *testing.T) {
	testenv.NeedsPrograms(t, "bash")
	const fails = "echo curl: Could not resolve host: example.com; exit "
	for _, tt := range []struct {
		name   string
		before string // a script that ran
		argv   string // in bash
		policy protocol.ApprovalPolicy
		mode   protocol.SandboxMode
		want   bool
	}{
		{"a download", "", "npm install", "on-request", "workspace-write", true},
		{"one among others", "", "cd x && git -C y push | tee log", "on-request", "workspace-write", true},
		{"no download", "", "rm -r x && git commit -m npm", "on-request", "workspace-write", false},
		{"after a failure", fails + "66", "make", "on-request", "workspace-write", true},
		{"after a success", fails + "0", "make", "on-request", "workspace-write", false},
		{"after another failure", "exit 66", "make", "on-request", "workspace-write", false},
		{"leaves read-only", "", "npm install", "on-request", "read-only", false},
		{"under untrusted", "", "npm install", "untrusted", "workspace-write", true},
		{"full access", "", "npm install", "untrusted", "danger-full-access", false},
	} {
		h := &host{answer: elicit.Denied}
		turn := turnOf(tool.Options{Sandbox: &fakeSandbox{host: h}, HostsTip: "Try it."}, h, t.TempDir(), tt.policy, tt.mode)
		if tt.before != "" {
			called(t, turn, shellCall("", "bash", "-c", tt.before))
		}
		members := escalated
		if tt.policy == protocol.ApprovalUntrusted {
			members = ""
		}
		called(t, turn, shellCall(members, "bash", "-c", tt.argv))
		asked := h.asked()
		if len(asked) != 1 {
			t.Fatalf("%s: %s", tt.name, h.steps())
		}
		must.Equal(t, tt.name, tt.want, asked[0].Tip == "Try it.")
	}
}
