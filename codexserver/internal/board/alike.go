package board

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// cover answers the other open questions that the decision d about r covers: those that ask
// the same, if it lasts for the session, and those that the rule allows which it accepted.
// Otherwise a person would be asked again what was just allowed.
func (b *Board) cover(r *approval.Request, d approval.Decision) {
	if d.Decision != elicit.ApprovedForSession && d.Rule == 0 {
		return
	}
	exec, _ := r.Event.(protocol.ExecApprovalRequest)
	b.mu.Lock()
	questions := slices.Collect(maps.Keys(b.questions))
	b.mu.Unlock()
	for _, q := range questions {
		e := end{with: exec.CallID}
		switch {
		case d.Rule != 0:
			var ruled bool
			if e.out, ruled = b.kept(q.request); !ruled {
				continue
			}
			e.by, e.why = approval.ByRule, fmt.Errorf("%w: approved, by the rule that was accepted with another question", approval.ErrElsewhere)
		case alike(q.request, r):
			e.out = elicit.Outcome{Decision: d.Decision, Detail: "answered with the same question, for the session"}
			e.by, e.why = d.By, fmt.Errorf("%w: approved for the session, with the same question", approval.ErrElsewhere)
		default:
			continue
		}
		select {
		case q.alike <- e:
		default: // it is answered
		}
	}
}

// alike reports whether two questions of a turn ask exactly the same, also about the content of
// the files that a command names. Only what the model says about them may differ.
func alike(a, b *approval.Request) bool {
	x, ok := a.Event.(protocol.ExecApprovalRequest)
	y, also := b.Event.(protocol.ExecApprovalRequest)
	if a == b || !ok || !also || x.Content == "" || a.Question.Once || b.Question.Once || a.Thread.ID != b.Thread.ID || a.Turn != b.Turn {
		return false
	}
	for _, q := range []*protocol.ExecApprovalRequest{&x, &y} {
		q.CallID, q.TurnID, q.Reason, q.FromEngine = "", "", "", false
	}
	return reflect.DeepEqual(x, y)
}
