package mcp

import (
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Place returns the place that asks the client the questions of a turn that no call of a tool
// waits for.
func (ss *LegacySession) Place() approve.Place { return ss.PlaceOf(ss.asks("")) }

// PlaceOf is [LegacySession.Place] for a client that ask asks in another way.
func (ss *LegacySession) PlaceOf(ask Ask) approve.Place {
	return &approve.Client{Host: ss.client.hosts.Host(ss.Host()), Can: ss.canAsk, Asks: ask}
}

// Ask asks a client a question: the method Ask of an [approve.Place].
type Ask = func(context.Context, *approval.Request) (elicit.Outcome, error)

// asks returns a function that asks the client about the turn of a call, by elicitation/create.
func (ss *LegacySession) asks(call string) Ask {
	return func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		asked := *r.Question // a copy, because others read it
		asked.Extra = codexMembers(call, r)
		out := ss.hello.Load().asker.Ask(ctx, &asked)
		ss.ends(ctx, r, out)
		return out, nil
	}
}

// codexMembers returns the facts of a question under Codex's names. They are next to the
// message. Most SDKs drop them. Call is the id of the call.
func codexMembers(call string, r *approval.Request) map[string]any {
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
	m["codex_mcp_tool_call_id"], m["codex_event_id"] = call, r.Turn
	return m
}

// Elicit asks the client a question of another party.
func (ss *LegacySession) Elicit(ctx context.Context, f *elicit.Foreign) (json.RawMessage, error) {
	if !ss.canAsk() {
		return nil, elicit.ErrUnsupported
	}
	return ss.hello.Load().asker.Forward(ctx, f)
}
