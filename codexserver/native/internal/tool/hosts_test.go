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

// TestHostsTip says which questions have the sentence about the network by the host, and what the model is told of it.
func TestHostsTip(t *testing.T) {
	for _, tt := range []struct {
		name    string
		tip     string
		policy  protocol.ApprovalPolicy
		mode    protocol.SandboxMode
		members string
		want    bool
	}{
		{"leaves workspace-write", "Try it.", protocol.ApprovalOnRequest, protocol.SandboxWorkspaceWrite, escalated, true},
		{"leaves read-only", "Try it.", protocol.ApprovalOnRequest, protocol.SandboxReadOnly, escalated, false},
		{"under untrusted", "Try it.", protocol.ApprovalUntrusted, protocol.SandboxWorkspaceWrite, "", true},
		{"full access", "Try it.", protocol.ApprovalUntrusted, protocol.SandboxDangerFullAccess, "", false},
		{"hosts are there, or cannot be", "", protocol.ApprovalOnRequest, protocol.SandboxWorkspaceWrite, escalated, false},
	} {
		h := &host{answer: elicit.Denied}
		called(t, turnOf(tool.Options{Sandbox: &fakeSandbox{host: h}, HostsTip: tt.tip}, h, t.TempDir(), tt.policy, tt.mode), shellCall(tt.members, "npm", "install"))
		asked := h.asked()
		if len(asked) != 1 {
			t.Fatalf("%s: %s", tt.name, h.steps())
		}
		must.Equal(t, tt.name, tt.want, asked[0].Tip == "Try it.")
	}
	for _, on := range []bool{false, true} {
		o := tool.Options{}
		if on {
			o.Hosts = &hosts.Proxy{}
		}
		must.Equal(t, "the model is told", on, strings.Contains(newBox(o).Offer(false)[0].Description, "if the user allows each of them"))
	}
}
