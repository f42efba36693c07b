package board

import (
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// MetaKey is the key of [Meta] in the _meta of an elicitation/create request.
const MetaKey = "codex/approval"

// Meta returns the facts of the request for clients that show more than the
// question's message: threadId, eventId, and for a command or a patch also kind,
// callId, command and cwd or changes, and reason.
func Meta(r *approval.Request) map[string]any {
	m := map[string]any{"threadId": r.Thread.ID, "eventId": r.Turn}
	switch e := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		m["kind"], m["callId"], m["command"], m["cwd"] = "exec", e.CallID, e.Command, e.Cwd
		if e.Reason != "" {
			m["reason"] = e.Reason
		}
	case protocol.PatchApprovalRequest:
		m["kind"], m["callId"], m["changes"] = "patch", e.CallID, e.Changes
		if e.Reason != "" {
			m["reason"] = e.Reason
		}
	}
	return m
}
