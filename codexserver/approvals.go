package codexserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// ApproveExec implements engine.Host.
func (h *host) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	h.Emit(r)
	if out, ruled := h.session.server.options.Rules.decide(r.Command); ruled {
		return h.decided(ctx, r, out)
	}
	exec := &elicit.ExecQuestion{Subject: r.Subject, Command: r.Command, Cwd: r.Cwd, Unsandboxed: r.LeavesSandbox}
	if r.FromEngine {
		exec.Notes = []string{r.Reason}
	} else {
		exec.Reason = r.Reason
	}
	q := exec.Question()
	q.Safe = r.Safe
	a, _ := h.turn()
	return h.decided(ctx, r, a.ask(ctx, h, q, r))
}

// ApprovePatch implements engine.Host.
func (h *host) ApprovePatch(ctx context.Context, r protocol.PatchApprovalRequest) elicit.Outcome {
	h.Emit(r)
	q := (&elicit.PatchQuestion{
		Subject: r.Subject, Changes: listChanges(r.Changes), Cwd: r.Cwd, Reason: r.Reason, GrantRoot: r.GrantRoot,
	}).Question()
	a, _ := h.turn()
	return h.decided(ctx, r, a.ask(ctx, h, q, r))
}

// Approve implements engine.Approver.
func (h *host) Approve(ctx context.Context, q *elicit.Question) elicit.Outcome {
	r := protocol.RawEvent{Type: "approval_request"}
	r.Raw = fmt.Appendf(nil, `{"type":"approval_request","message":%s}`, quote(q.Message))
	return h.decided(ctx, r, h.session.theAsker().Ask(ctx, q))
}

// Elicit implements engine.Asker.
func (h *host) Elicit(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	ss := h.session
	ss.mu.Lock()
	able := ss.able
	ss.mu.Unlock()
	if !able {
		return nil, elicit.ErrUnsupported
	}
	if bound := ss.server.options.Approvals.Timeout; bound >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cmp.Or(bound, defaultTimeout))
		defer cancel()
	}
	var result json.RawMessage
	err := ss.peer.Call(ctx, mcptypes.ElicitationCreate.Name(), params, &result)
	return result, err
}

// defaultTimeout is the one of package elicit.
const defaultTimeout = 10 * time.Minute

// decided logs and records how a question ended, and tells what came in place
// of an answer.
func (h *host) decided(ctx context.Context, r protocol.EventMsg, out elicit.Outcome) elicit.Outcome {
	if !out.Decision.Valid() {
		out.Decision = elicit.Denied
	}
	h.mu.Lock()
	h.submit()
	a, thread := h.asker, h.configured.SessionID
	h.mu.Unlock()
	ss := h.session
	ss.log.Log(ctx, out.Level, "approval", "thread", thread, "decision", out.Decision, "reason", out.Reason, "detail", out.Detail)
	if out.Level >= slog.LevelWarn {
		ss.warn(out.Detail)
	}
	if err := ss.server.record.add(thread, r, out); err != nil {
		ss.log.Warn("approval not recorded", "error", err)
	}
	if excuse := out.ForCaller(); excuse != "" {
		a.excuse(excuse)
		h.Emit(protocol.BackgroundEvent{Message: excuse})
	}
	return out
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
