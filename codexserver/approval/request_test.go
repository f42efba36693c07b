package approval_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

func TestCall(t *testing.T) {
	for want, event := range map[string]protocol.EventMsg{
		"command": protocol.ExecApprovalRequest{CallID: "command"},
		"patch":   protocol.PatchApprovalRequest{CallID: "patch"},
		"":        protocol.MCPToolCallBegin{CallID: "tool"},
	} {
		if got := (&approval.Request{Event: event}).Call(); got != want {
			t.Errorf("the call of %T is %q, want %q", event, got, want)
		}
	}
	if got := new(approval.Request).Call(); got != "" {
		t.Errorf("without an event: %q", got)
	}
}
