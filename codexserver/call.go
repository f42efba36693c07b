package codexserver

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// call is one tools/call that runs a turn. It is an [asker] that gets its
// events as codex/event with its own request id, and is asked by elicitation.
type call struct {
	session  *session
	request  jsonrpc.ID
	first    bool // the first turn of its conversation, whose events bear the request's id
	progress *progress

	mu      sync.Mutex
	answer  string   // the turn's last message
	excuses []string // why nobody could be asked
}

// id is the request's id as a string, whatever its JSON type.
func (c *call) id() string {
	if s, ok := c.request.Str(); ok {
		return s
	}
	return c.request.String()
}

func (c *call) submission() string {
	if c.first {
		return c.id()
	}
	return ""
}

func (c *call) event(h *host, e protocol.Event) {
	switch m := e.Msg.(type) {
	case protocol.SessionConfigured:
		m.InitialMessages = nil // a caller of tools has no use for the past
		e.Msg = m
	case protocol.TaskComplete:
		if h.failed {
			return // the error event has ended the turn
		}
		if m.LastAgentMessage != nil {
			c.mu.Lock()
			c.answer = *m.LastAgentMessage
			c.mu.Unlock()
		}
	}
	c.session.sendToolEvent(c.request, h.configured.SessionID, e)
	c.progress.event(e.Msg)
}

func (c *call) ask(ctx context.Context, h *host, q *elicit.Question, r protocol.EventMsg) elicit.Outcome {
	_, event := h.turn()
	asked := *q // which others read
	asked.Extra = codexMembers(r)
	asked.Extra["codex_mcp_tool_call_id"] = c.id()
	asked.Extra["codex_event_id"] = event
	asked.Extra["threadId"] = h.thread()
	asked.Meta = map[string]any{"codex/approval": approvalMeta(h.thread(), event, r)}
	return c.session.theAsker().Ask(ctx, &asked)
}

func (c *call) excuse(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.excuses, reason) {
		c.excuses = append(c.excuses, reason)
	}
}

// result is what a turn gives its caller: the answer, and in a second block why
// questions could not be put to the client. A failed or aborted turn is an
// error result with the reason; the thread stays usable.
func (c *call) result(thread string, err error) *mcptypes.CallToolResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.answer
	var abort *engine.AbortError
	switch {
	case errors.As(err, &abort):
		text = "Turn aborted: " + abortCause(abort)
	case err != nil:
		text = err.Error()
	}
	r := c.session.toolResult(thread, append([]string{text}, c.excuses...)...)
	if err != nil {
		r.IsError = new(true)
	}
	return r
}

func abortCause(e *engine.AbortError) string {
	switch {
	case e.Cause == nil:
		return string(e.Reason)
	case errors.Is(e.Cause, jsonrpc.ErrClosed):
		return "the client closed the connection"
	}
	return e.Cause.Error()
}

// codexMembers are the facts of a question under the names that Codex gives
// them beside the message; most SDKs drop them.
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

// approvalMeta are the same facts for _meta, which SDKs keep.
func approvalMeta(thread, event string, r protocol.EventMsg) map[string]any {
	m := map[string]any{"threadId": thread, "eventId": event}
	switch r := r.(type) {
	case protocol.ExecApprovalRequest:
		m["kind"], m["callId"], m["command"], m["cwd"] = "exec", r.CallID, r.Command, r.Cwd
		if r.Reason != "" {
			m["reason"] = r.Reason
		}
	case protocol.PatchApprovalRequest:
		m["kind"], m["callId"], m["changes"] = "patch", r.CallID, r.Changes
		if r.Reason != "" {
			m["reason"] = r.Reason
		}
	}
	return m
}
