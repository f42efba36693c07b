package thread

import (
	"context"
	"maps"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ApproveExec implements [engine.Host].
func (h *host) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	exec := &elicit.ExecQuestion{
		Subject: r.Subject, Command: r.Command, Cwd: r.Cwd, Program: r.Program, Unsandboxed: r.LeavesSandbox, NoSandbox: r.NoSandbox,
	}
	if r.FromEngine {
		exec.Notes = []string{r.Reason}
	} else {
		exec.Reason = r.Reason
	}
	q := exec.Question()
	whole := !q.Once
	q.Safe = r.Safe
	q.Once = q.Once || r.Once
	h.deliver("", r, false) // without waiting for the client, because the desk may answer
	return h.approve(ctx, r, q, whole)
}

// ApprovePatch implements [engine.Host].
func (h *host) ApprovePatch(ctx context.Context, r protocol.PatchApprovalRequest) elicit.Outcome {
	q := (&elicit.PatchQuestion{
		Subject: r.Subject, Changes: listChanges(r.Changes, r.Links), Cwd: r.Cwd, Reason: r.Reason, GrantRoot: r.GrantRoot, Notes: r.Notes,
	}).Question()
	whole := !q.Once
	q.Once = q.Once || r.Once
	h.deliver("", r, false)
	return h.approve(ctx, r, q, whole)
}

// Approve implements [engine.Host].
func (h *host) Approve(ctx context.Context, q *elicit.Question) elicit.Outcome {
	const kind = "approval_request"
	raw, err := json.Marshal(struct {
		Type    string         `json:"type"`
		Message string         `json:"message"`
		Meta    map[string]any `json:"_meta"`
	}{kind, q.Message, q.Meta}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		raw = []byte(`{"type":"` + kind + `"}`) // the question's _meta is not JSON
	}
	return h.approve(ctx, protocol.RawEvent{Type: kind, Raw: raw}, q, false)
}

// approve gets the decision about a question. It reports both to the observers. If
// there was no answer, an event reports why. If the question shows the whole of what is asked,
// it may offer a lasting rule.
func (h *host) approve(ctx context.Context, m protocol.EventMsg, q *elicit.Question, whole bool) elicit.Outcome {
	h.mu.Lock()
	r := &approval.Request{Thread: h.asThread(h.configured.SessionID), Turn: h.now.event, Event: m, Question: q, Patience: h.now.Patience, Deny: h.now.denied}
	switch m := m.(type) {
	case protocol.ExecApprovalRequest:
		r.Asked = m.Asked
	case protocol.PatchApprovalRequest:
		r.Asked = m.Asked
	}
	observers := h.observers
	h.mu.Unlock()
	if q.Meta == nil {
		asked := *q // a copy, because the question of Approve is the engine's
		asked.Meta = map[string]any{MetaFacts: facts(r)}
		if whole {
			asked.Always = h.board.Offer(r)
		}
		r.Question = &asked
	}
	for _, o := range observers {
		o.Asked(r)
	}
	d := h.board.Decide(ctx, r)
	h.mu.Lock()
	h.submit()
	h.mu.Unlock()
	for _, o := range observers {
		o.Decided(r, d)
	}
	if words := d.ForCaller(); words != "" {
		h.deliver("", protocol.BackgroundEvent{Message: words}, false)
	}
	if d.Decision == elicit.ApprovedAlways && d.Rule != 0 {
		d.Decision = elicit.Approved // for the engine, which does not keep the rule
	}
	return d.Outcome
}

// MetaFacts is the member of [elicit.Question.Meta] with the facts of a question, for clients
// that show more than its message.
const MetaFacts = "codex/approval"

// facts returns threadId, eventId, and for a command or a patch also kind, callId, command
// and cwd or changes, reason, and reach.
func facts(r *approval.Request) map[string]any {
	m := map[string]any{"threadId": r.Thread.ID, "eventId": r.Turn}
	var reason string
	switch e := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		m["kind"], m["callId"], m["command"], m["cwd"], reason = "exec", e.CallID, e.Command, e.Cwd, e.Reason
	case protocol.PatchApprovalRequest:
		m["kind"], m["callId"], m["changes"], reason = "patch", e.CallID, e.Changes, e.Reason
	}
	if reason != "" {
		m["reason"] = reason
	}
	if r.Question.Reach != "" {
		m["reach"] = r.Question.Reach
	}
	return m
}

// listChanges summarizes a patch, sorted by path. Links are those of the request.
func listChanges(changes map[string]protocol.FileChange, links map[string]string) []elicit.Change {
	list := make([]elicit.Change, 0, len(changes))
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		f := changes[path]
		c := elicit.Change{Path: path, Via: links[path], Kind: elicit.ChangeUpdate}
		c.Added, c.Removed = f.Lines()
		switch {
		case f.Add != nil:
			c.Kind = elicit.ChangeAdd
		case f.Delete != nil:
			c.Kind = elicit.ChangeDelete
		case f.Update != nil && f.Update.MovePath != nil:
			c.MoveTo = *f.Update.MovePath
			c.MoveVia = links[c.MoveTo]
		}
		list = append(list, c)
	}
	return list
}
