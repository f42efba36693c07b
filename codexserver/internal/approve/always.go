package approve

import (
	"cmp"
	"errors"
	"log/slog"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Offer returns the lasting rule that the question of r may offer, nil if there is none, such as for a question
// that does not show all that is asked, or that a person decides each time.
func (b *Board) Offer(r *approval.Request) *elicit.Always {
	rule, err := b.offer(r)
	if err != nil {
		return nil
	}
	return &elicit.Always{Words: rule.Words()}
}

func (b *Board) offer(r *approval.Request) (rulefile.Rule, error) {
	if b.options.Kept != nil && !r.Question.Partial && !b.Person(r.Event) {
		switch m := r.Event.(type) {
		case protocol.ExecApprovalRequest:
			return rulefile.Offer(&m)
		case protocol.HostRequest:
			return rulefile.Rule{Host: m.Host}, nil
		}
	}
	return rulefile.Rule{}, rulefile.ErrNone
}

// keepRule keeps the lasting rule that an answer accepts. Only a person accepts one, and only the one that the
// question showed: not another, to which the same words in a folder that was replaced lead. If it cannot be
// kept, or its folder cannot be found any more, r is approved once, as the rule would allow it.
// It returns the number of the rule, 0 for none.
func (b *Board) keepRule(r *approval.Request, d *approval.Decision, ruled bool) (number int) {
	if d.Decision != elicit.ApprovedAlways {
		return 0
	}
	rule, err := b.offer(r)
	if ruled || r.Question.Always == nil || errors.Is(err, rulefile.ErrNone) || err == nil && r.Question.Always.Words != rule.Words() {
		const words = "a lasting rule was accepted that no question offered"
		d.Outcome = denied(cmp.Or(d.Feedback, words), "denied: "+words, slog.LevelWarn)
		d.Reason = elicit.ReasonNotUnderstood
		return 0
	}
	_, isHost := r.Event.(protocol.HostRequest)
	d.Confined = !isHost
	var kept rulefile.Kept
	if err == nil {
		kept, err = b.options.Kept.Add(rulefile.Kept{Rule: rule, By: string(d.By), Principal: r.Thread.Principal})
	}
	if err != nil {
		d.Decision, d.Level = elicit.Approved, slog.LevelWarn
		d.Detail = "approved once, because the rule could not be kept: " + err.Error()
		d.Remarks = append(d.Remarks, "This was approved once. The rule that you accepted could not be kept: "+err.Error())
		return 0
	}
	d.RuleWords = rule.Words()
	return kept.Number
}
