package mcp

import (
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// client is the place that asks the client the questions of a tool's call, by
// elicitation/create.
type legacyClient struct {
	session *LegacySession
	call    string // the id of the call
}

// place returns the place for the questions of a call: the client, or the approver if the
// client may not approve.
func (ss *LegacySession) place(call string) board.Place {
	if ss.unasked && ss.server.Relay != nil {
		return ss.server.Relay
	}
	return legacyClient{ss, call}
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
