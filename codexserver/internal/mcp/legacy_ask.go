package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// legacyClient is the place that asks the client the questions of a tool's call, by
// elicitation/create.
type legacyClient struct {
	session *LegacySession
	call    string // the id of the call
}

// Place returns the place that asks the client the questions of a turn that no call of a tool
// waits for.
func (ss *LegacySession) Place() board.Place { return legacyClient{session: ss} }

// Decider implements [board.Place].
func (legacyClient) Decider() approval.Decider { return approval.ByClient }

// Ask implements [board.Place].
func (c legacyClient) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	asked := *r.Question // a copy, because others read it
	asked.Extra = c.codexMembers(r)
	return c.session.theAsker().Ask(ctx, &asked), nil
}

// remaining asks the client the questions of turns that outlive it, or that other clients began.
// When the client has gone, the question waits for another one.
type remaining struct{ legacyClient }

// Ask implements [board.Place].
func (c remaining) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	ss := c.session
	waits := hold{ss.server}
	if !ss.canAsk() && ss.waits() {
		return waits.Ask(ctx, r)
	}
	out, err := c.legacyClient.Ask(ctx, r)
	if !ss.canAsk() {
		return out, err
	}
	if gone := out.Reason == elicit.ReasonPeerGone || ss.ctx.Err() != nil; gone && ctx.Err() == nil && !answered(out) {
		return waits.Ask(ctx, r)
	}
	return out, err
}

// answered reports whether a client gave an answer that could be read.
func answered(out elicit.Outcome) bool {
	switch out.Reason {
	case "", elicit.ReasonDeclined, elicit.ReasonCancelled, elicit.ReasonNotUnderstood:
		return true
	}
	return false
}

// codexMembers returns the facts of a question under Codex's names. They are next to the
// message. Most SDKs drop them.
func (c legacyClient) codexMembers(r *approval.Request) map[string]any {
	m := map[string]any{"threadId": r.Thread.ID}
	switch e := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		m["codex_elicitation"], m["codex_call_id"] = "exec-approval", e.CallID
		m["codex_command"], m["codex_cwd"] = e.Command, e.Cwd
	case protocol.PatchApprovalRequest:
		m["codex_elicitation"], m["codex_call_id"] = "patch-approval", e.CallID
		m["codex_changes"] = e.Changes
		if e.Reason != "" {
			m["codex_reason"] = e.Reason
		}
		if e.GrantRoot != "" {
			m["codex_grant_root"] = e.GrantRoot
		}
	default:
		return m
	}
	m["codex_mcp_tool_call_id"], m["codex_event_id"] = c.call, r.Turn
	return m
}

// theAsker returns the asker for the client.
func (ss *LegacySession) theAsker() *elicit.Asker {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.asker
}

// Elicit asks the client a question of another party.
func (ss *LegacySession) Elicit(ctx context.Context, f *elicit.Foreign) (json.RawMessage, error) {
	if !ss.canAsk() {
		return nil, elicit.ErrUnsupported
	}
	return ss.theAsker().Forward(ctx, f)
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
