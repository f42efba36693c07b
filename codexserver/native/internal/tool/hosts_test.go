package tool_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/hosts"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestHostsKey says which questions name the key of the network by the host, and what the model is told of it.
func TestHostsKey(t *testing.T) {
	for _, tt := range []struct {
		name    string
		key     bool
		policy  protocol.ApprovalPolicy
		mode    protocol.SandboxMode
		members string
		want    bool
	}{
		{"leaves workspace-write", true, protocol.ApprovalOnRequest, protocol.SandboxWorkspaceWrite, escalated, true},
		{"leaves read-only", true, protocol.ApprovalOnRequest, protocol.SandboxReadOnly, escalated, false},
		{"under untrusted", true, protocol.ApprovalUntrusted, protocol.SandboxWorkspaceWrite, "", true},
		{"full access", true, protocol.ApprovalUntrusted, protocol.SandboxDangerFullAccess, "", false},
		{"hosts are there, or cannot be", false, protocol.ApprovalOnRequest, protocol.SandboxWorkspaceWrite, escalated, false},
	} {
		h := &host{answer: elicit.Denied}
		called(t, turnOf(tool.Options{Sandbox: &fakeSandbox{host: h}, HostsKey: tt.key}, h, t.TempDir(), tt.policy, tt.mode), shellCall(tt.members, "npm", "install"))
		asked := h.asked()
		if len(asked) != 1 {
			t.Fatalf("%s: %s", tt.name, h.steps())
		}
		must.Equal(t, tt.name, tt.want, strings.Contains(asked[0].Tip, `approvals.hosts = "ask"`))
	}
	for _, on := range []bool{false, true} {
		o := tool.Options{}
		if on {
			o.Hosts = &hosts.Proxy{}
		}
		must.Equal(t, "the model is told", on, strings.Contains(newBox(o).Offer(false)[0].Description, "if the user allows each of them"))
	}
}
