package codexserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ApproveExec implements engine.Host.
func (h *host) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	exec := &elicit.ExecQuestion{Subject: r.Subject, Command: r.Command, Cwd: r.Cwd, Program: r.Program, Unsandboxed: r.LeavesSandbox}
	if r.FromEngine {
		exec.Notes = []string{r.Reason}
	} else {
		exec.Reason = r.Reason
	}
	q := exec.Question()
	q.Safe = r.Safe
	q.Once = q.Once || r.Once
	h.Emit(r)
	return h.approve(ctx, &ApprovalRequest{Request: r, Question: q})
}

// ApprovePatch implements engine.Host.
func (h *host) ApprovePatch(ctx context.Context, r protocol.PatchApprovalRequest) elicit.Outcome {
	q := (&elicit.PatchQuestion{
		Subject: r.Subject, Changes: listChanges(r.Changes, r.Links), Cwd: r.Cwd, Reason: r.Reason, GrantRoot: r.GrantRoot,
	}).Question()
	q.Once = q.Once || r.Once
	h.Emit(r)
	return h.approve(ctx, &ApprovalRequest{Request: r, Question: q})
}

// Approve implements engine.Approver.
func (h *host) Approve(ctx context.Context, q *elicit.Question) elicit.Outcome {
	r := protocol.RawEvent{Type: "approval_request"}
	meta, err := jsonv2.Marshal(q.Meta, jsonv2.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		meta = quote(err.Error())
	}
	r.Raw = fmt.Appendf(nil, `{"type":"approval_request","message":%s,"_meta":%s}`, quote(q.Message), meta)
	return h.approve(ctx, &ApprovalRequest{Request: r, Question: q})
}

// approve gets a decision: from the user's rules, or from whoever answers first.
func (h *host) approve(ctx context.Context, r *ApprovalRequest) elicit.Outcome {
	r.Thread = h.asThread(h.thread())
	out, ruled := errRule, true
	h.guard("Rules.Decide", func() { out, ruled = h.session.server.options.Rules.decide(ctx, r) })
	by := byRule
	if !ruled {
		out, by = h.ask(ctx, r)
	}
	switch {
	case !out.Decision.Valid():
		out.Decision = elicit.Denied
	case r.Question.Once && out.Decision == elicit.ApprovedForSession:
		out.Decision = elicit.Approved
	}
	h.decided(ctx, r, out, by)
	return out
}

// errRule is what a rule that panics has decided.
var errRule = elicit.Outcome{
	Decision: elicit.Denied, Reason: "declined", Feedback: "a rule of the user failed", Detail: "denied, because a rule failed", Level: slog.LevelError,
}

// Elicit implements engine.Asker.
func (h *host) Elicit(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	ss := h.session
	if !ss.canAsk() {
		return nil, elicit.ErrUnsupported
	}
	ctx, cancel := approvalTimeout(ctx, &ss.server.options.Approvals)
	defer cancel()
	var result json.RawMessage
	err := caller{ss}.Call(ctx, mcptypes.ElicitationCreate.Name(), params, &result)
	return result, err
}

// decided logs and records how a question ended, and tells what came in place
// of an answer.
func (h *host) decided(ctx context.Context, r *ApprovalRequest, out elicit.Outcome, by string) {
	h.mu.Lock()
	h.submit()
	a := h.asker
	h.mu.Unlock()
	ss := h.session
	ss.log.Log(ctx, max(out.Level, slog.LevelInfo), "approval", "thread", r.Thread.ID, "decision", out.Decision, "by", by, "reason", out.Reason, "detail", out.Detail)
	if out.Level >= slog.LevelWarn {
		ss.warn(out.Detail)
	}
	if err := ss.server.record.add(r, out, by); err != nil {
		ss.log.Warn("approval not recorded", "error", err)
	}
	if desk := ss.server.options.Desk; desk != nil {
		h.guard("Desk.Decided", func() { desk.Decided(r, out, by) })
	}
	if excuse := out.ForCaller(); excuse != "" {
		a.excuse(excuse)
		h.Emit(protocol.BackgroundEvent{Message: excuse})
	}
}

// listChanges sums a patch up, sorted by path. Links are those of the request.
func listChanges(changes map[string]protocol.FileChange, links map[string]string) []elicit.Change {
	list := make([]elicit.Change, 0, len(changes))
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		c := elicit.Change{Path: path, Via: links[path]}
		switch f := changes[path]; {
		case f.Add != nil:
			c.Kind, c.Added = "add", countLines(f.Add.Content)
		case f.Delete != nil:
			c.Kind, c.Removed = "delete", countLines(f.Delete.Content)
		case f.Update != nil:
			c.Kind = "update"
			if f.Update.MovePath != nil {
				c.MoveTo = *f.Update.MovePath
				c.MoveVia = links[c.MoveTo]
			}
			c.Added, c.Removed = countChanges(f.Update.UnifiedDiff)
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

func countChanges(diff string) (added, removed int) {
	for line := range strings.Lines(diff) {
		switch line[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}
