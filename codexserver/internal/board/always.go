package board

import (
	"cmp"
	"log/slog"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Offer returns the lasting rule that the question of r may offer, nil if there is none. The
// question must show all that is asked. The board keeps the rule until [Board.Decide] returns
// for r: a person accepts what the question showed, whatever has changed since.
func (b *Board) Offer(r *approval.Request) *elicit.Always {
	e, isCommand := r.Event.(protocol.ExecApprovalRequest)
	if !isCommand || b.options.Kept == nil {
		return nil
	}
	rule, ok := rulefile.Offer(&e)
	if !ok {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.offers == nil {
		b.offers = map[*approval.Request]rulefile.Rule{}
	}
	b.offers[r] = rule
	return &elicit.Always{Words: rule.Words()}
}

// offered returns the rule that the board keeps for r, and forgets it.
func (b *Board) offered(r *approval.Request) (rulefile.Rule, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rule, ok := b.offers[r]
	delete(b.offers, r)
	return rule, ok
}

// accept keeps the rule that a person accepted with the answer d. If that fails, r is approved
// once, as the rule would allow it.
func (b *Board) accept(r *approval.Request, rule rulefile.Rule, d *approval.Decision) {
	d.Confined = true
	kept, err := b.options.Kept.Add(rulefile.Kept{Rule: rule, By: string(d.By), Principal: r.Thread.Principal})
	if err != nil {
		d.Decision, d.Level = elicit.Approved, slog.LevelWarn
		d.Detail = "approved once, because the rule could not be kept: " + err.Error()
		d.Remarks = append(d.Remarks, "This was approved once. The rule that you accepted could not be kept: "+err.Error())
		return
	}
	d.Rule, d.RuleWords = kept.Number, rule.Words()
}

// settle decides what becomes of an answer that accepts a lasting rule. Only a person accepts
// one, and only one that was offered.
func (b *Board) settle(r *approval.Request, d *approval.Decision, ruled bool) {
	rule, ours := b.offered(r)
	if d.Decision != elicit.ApprovedAlways {
		return
	}
	if ruled || r.Question.Always == nil || !ours {
		d.Outcome = elicit.Outcome{
			Decision: elicit.Denied, Reason: elicit.ReasonNotUnderstood, Level: slog.LevelWarn,
			Feedback: cmp.Or(d.Feedback, "a lasting rule was accepted that no question offered"),
			Detail:   "denied: a lasting rule was accepted that no question offered",
		}
		return
	}
	b.accept(r, rule, d)
}
