package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// legacyClient is the place that asks the client the questions of a tool's call, by
// elicitation/create.
type legacyClient struct {
	session *LegacySession
	call    string // the id of the call
}

// Decider implements [board.Place].
func (legacyClient) Decider() approval.Decider { return approval.ByClient }

// Ask implements [board.Place].
func (c legacyClient) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	asked := *r.Question // a copy, because others read it
	if _, other := r.Event.(protocol.RawEvent); other {
		asked.Extra = map[string]any{"threadId": r.Thread.ID}
	} else {
		asked.Extra = codexMembers(r.Event)
		asked.Extra["threadId"] = r.Thread.ID
		asked.Extra["codex_mcp_tool_call_id"] = c.call
		asked.Extra["codex_event_id"] = r.Turn
		asked.Meta = map[string]any{board.MetaKey: board.Meta(r)}
	}
	return c.session.theAsker().Ask(ctx, &asked), nil
}

// theAsker returns the asker for the client.
func (ss *LegacySession) theAsker() *elicit.Asker {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.asker
}

// elicit sends an elicitation/create request other than an approval.
func (ss *LegacySession) elicit(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	if !ss.canAsk() {
		return nil, elicit.ErrUnsupported
	}
	ctx, cancel := ss.server.Approvals.WithTimeout(ctx)
	defer cancel()
	var result json.RawMessage
	err := caller{ss}.Call(ctx, mcptypes.ElicitationCreate.Name(), params, &result)
	return result, err
}

// codexMembers returns the facts of a question under Codex's names. They are next to the
// message. Most SDKs drop them.
func codexMembers(r protocol.EventMsg) map[string]any {
	switch r := r.(type) {
	case protocol.ExecApprovalRequest:
		return map[string]any{
			"codex_elicitation": "exec-approval",
			"codex_call_id":     r.CallID,
			"codex_command":     r.Command,
			"codex_cwd":         r.Cwd,
		}
	case protocol.PatchApprovalRequest:
		m := map[string]any{
			"codex_elicitation": "patch-approval",
			"codex_call_id":     r.CallID,
			"codex_changes":     r.Changes,
		}
		if r.Reason != "" {
			m["codex_reason"] = r.Reason
		}
		if r.GrantRoot != "" {
			m["codex_grant_root"] = r.GrantRoot
		}
		return m
	}
	return map[string]any{}
}

// caller sends the session's questions to the client.
type caller struct{ *LegacySession }

// Call implements elicit.Caller. After the end of the input no client can answer. If calls
// are still finished then, the question is decided as for a client that cannot be asked.
func (c caller) Call(ctx context.Context, method string, params, result any) error {
	err := c.peer.Call(ctx, method, params, result)
	if c.server.Finish && ctx.Err() == nil && errors.Is(err, jsonrpc.ErrClosed) {
		return elicit.ErrUnsupported
	}
	return err
}

// attendance returns the attendance for turns that a client starts by JSON-RPC methods. The
// events go to the listeners of the thread. The questions are asked by execCommandApproval
// and applyPatchApproval.
func (ss *LegacySession) attendance() thread.Attendance {
	return thread.Attendance{Observers: []thread.Observer{ss.outlet()}, Place: methods{ss}, Elicit: ss.elicit}
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
