package codexserver

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// host is the server's side of one conversation: it sends the engine's events
// to whoever listens and its questions to the client. It implements
// [engine.Host].
type host struct {
	session *session

	mu          sync.Mutex // also keeps events in the order of Emit
	call        *call      // the call that gets the events; the last one between turns
	event       string     // the submission id of the events
	failed      bool       // the turn's error event was sent
	submissions submissions
}

// begin makes call the one that gets the events of the turn that starts now.
func (h *host) begin(c *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.call, h.event, h.failed = c, c.event, false
	if h.event == "" {
		h.event = h.submissions.next()
	}
}

// Emit implements engine.Host.
func (h *host) Emit(m protocol.EventMsg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := h.event
	switch m := m.(type) {
	case protocol.SessionConfigured:
		id = ""
	case protocol.Error:
		h.failed = true
	case protocol.TurnAborted:
		h.submissions.next()
	case protocol.TaskComplete:
		if h.failed {
			return // the error event has ended the turn for a tool's caller
		}
		if m.LastAgentMessage != nil {
			h.call.finish(*m.LastAgentMessage)
		}
	}
	h.session.sendEvent(h.call.request, protocol.Event{ID: id, Msg: m})
}

// ApproveExec implements engine.Host.
func (h *host) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	h.Emit(r)
	q := (&elicit.ExecQuestion{
		Command: r.Command, Cwd: r.Cwd, Reason: r.Reason, Unsandboxed: r.LeavesSandbox,
	}).Question()
	q.Extra = map[string]any{
		"codex_elicitation": "exec-approval",
		"codex_call_id":     r.CallID,
		"codex_command":     r.Command,
		"codex_cwd":         r.Cwd,
	}
	return h.ask(ctx, q)
}

// ApprovePatch implements engine.Host.
func (h *host) ApprovePatch(ctx context.Context, r protocol.PatchApprovalRequest) elicit.Outcome {
	h.Emit(r)
	q := (&elicit.PatchQuestion{
		Changes: listChanges(r.Changes), Reason: r.Reason, GrantRoot: r.GrantRoot,
	}).Question()
	q.Extra = map[string]any{
		"codex_elicitation": "patch-approval",
		"codex_call_id":     r.CallID,
		"codex_changes":     r.Changes,
	}
	if r.Reason != "" {
		q.Extra["codex_reason"] = r.Reason
	}
	if r.GrantRoot != "" {
		q.Extra["codex_grant_root"] = r.GrantRoot
	}
	return h.ask(ctx, q)
}

// listChanges sums a patch up, sorted by path.
func listChanges(changes map[string]protocol.FileChange) []elicit.Change {
	list := make([]elicit.Change, 0, len(changes))
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		c := elicit.Change{Path: path}
		switch f := changes[path]; {
		case f.Add != nil:
			c.Kind, c.Added = "add", countLines(f.Add.Content)
		case f.Delete != nil:
			c.Kind, c.Removed = "delete", countLines(f.Delete.Content)
		case f.Update != nil:
			c.Kind = "update"
			if f.Update.MovePath != nil {
				c.MoveTo = *f.Update.MovePath
			}
			for line := range strings.Lines(f.Update.UnifiedDiff) {
				switch line[0] {
				case '+':
					c.Added++
				case '-':
					c.Removed++
				}
			}
		}
		list = append(list, c)
	}
	return list
}

func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// ask puts the question to the client and remembers, for the call's result,
// what came instead of an answer.
func (h *host) ask(ctx context.Context, q *elicit.Question) elicit.Outcome {
	h.mu.Lock()
	c, event := h.call, h.event
	h.mu.Unlock()
	q.Extra["codex_mcp_tool_call_id"] = c.id()
	q.Extra["codex_event_id"] = event
	out := h.session.ask(ctx, q)
	h.mu.Lock()
	h.submissions.next()
	h.mu.Unlock()
	if excuse := out.ForCaller(); excuse != "" {
		c.excuse(excuse)
		h.Emit(protocol.BackgroundEvent{Message: excuse})
	}
	return out
}
