package methods

import (
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// ask asks the client the questions of a message's turn, by execCommandApproval and
// applyPatchApproval.
func (ss *session) ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	method, params := approvalRequest(r.Thread.ID, r.Event)
	if method == "" {
		return ss.client.Place().Ask(ctx, r)
	}
	caller := elicit.CallFunc(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		var result json.RawMessage
		err := ss.client.Call(ctx, method, params, &result)
		return result, err
	})
	// A client that uses these methods also handles these requests.
	able := elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`)}
	o := ss.server.Approvals
	o.NoLegacyFlat = false      // their answers are flat
	o.Schema = elicit.FormEmpty // they show no form, so they offer no lasting rule
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
