package codexserver

import (
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// message is what a client said with sendUserMessage or sendUserTurn. It is an
// [asker] that gets its events as a listener, if it is one, and is asked by
// execCommandApproval and applyPatchApproval.
type message struct{ session *session }

func (message) submission() string { return "" }

// event announces a session; everything else goes to the listeners.
func (m message) event(_ *host, e protocol.Event) {}

func (message) excuse(string) {}

func (m message) ask(ctx context.Context, h *host, q *elicit.Question, r protocol.EventMsg) elicit.Outcome {
	method, params := approvalRequest(h.thread(), r)
	caller := elicit.CallFunc(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		var result json.RawMessage
		err := m.session.peer.Call(ctx, method, params, &result)
		return result, err
	})
	// Whoever speaks these methods has the requests that belong to them.
	able := elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`)}
	o := m.session.server.options.Approvals
	o.NoLegacyFlat = false // their answers are flat
	return elicit.NewAsker(caller, able, &o).Ask(ctx, q)
}

// approvalRequest is the server's request of September 2025 for a question.
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
