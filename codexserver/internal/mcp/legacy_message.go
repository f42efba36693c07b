package mcp

import (
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// attendance returns the attendance for turns that a client starts by JSON-RPC methods. The
// events go to the listeners of the thread. The questions are asked by execCommandApproval
// and applyPatchApproval.
func (ss *LegacySession) attendance() thread.Attendance {
	return thread.Attendance{Watcher: remarks{ss}, Place: methods{ss}, Elicit: ss.elicit}
}

// methods is the place that asks the client the questions of a message's turn.
type methods struct{ session *LegacySession }

// Decider implements [board.Place].
func (methods) Decider() approval.Decider { return approval.ByClient }

// Ask implements [board.Place].
func (m methods) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	method, params := approvalRequest(r.Thread.ID, r.Event)
	if method == "" {
		return legacyClient{session: m.session}.Ask(ctx, r)
	}
	caller := elicit.CallFunc(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		var result json.RawMessage
		err := m.session.peer.Call(ctx, method, params, &result)
		return result, err
	})
	// A client that uses these methods also handles these requests.
	able := elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`)}
	o := m.session.server.Approvals
	o.NoLegacyFlat = false // their answers are flat
	return elicit.NewAsker(caller, able, &o).Ask(ctx, r.Question), nil
}

// approvalRequest returns the request of September 2025 for a question.
func approvalRequest(thread string, r protocol.EventMsg) (method string, params any) {
	switch r := r.(type) {
	case protocol.PatchApprovalRequest:
		return "applyPatchApproval", protocol.ApplyPatchApprovalParams{
			ConversationID: thread, CallID: r.CallID, FileChanges: r.Changes, Reason: r.Reason, GrantRoot: r.GrantRoot,
		}
	case protocol.ExecApprovalRequest:
		return "execCommandApproval", protocol.ExecCommandApprovalParams{
			ConversationID: thread, CallID: r.CallID, Command: r.Command, Cwd: r.Cwd, Reason: r.Reason,
		}
	}
	return "", nil
}
