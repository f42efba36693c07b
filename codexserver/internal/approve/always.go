package approve

import (
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
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

// offer returns the rule that the question may offer. The error is [rulefile.ErrNone] for none, and any other says why
// the folder of a command cannot be found.
func (b *Board) offer(r *approval.Request) (rulefile.Rule, error) {
	if b.options.Kept == nil || r.Question.Partial || r.Subject.Approver() != approval.Anyone || b.Each(r.Subject) {
		return rulefile.Rule{}, rulefile.ErrNone
	}
	return rulefile.Offer(rulefile.Action(r.Subject.Lasting()))
}

// decided returns what the ends of a question decide, and the number of the lasting rule that is kept with the
// decision, 0 for none. Only a person accepts a rule, and only the one that the question showed: not another, to which
// the same words in a folder that was replaced lead. A rule that cannot be kept is an input of the decision.
func (b *Board) decided(r *approval.Request, all ends, elsewhere bool) (d approval.Decision, number int) {
	rule := lasting{offered: r.Question.Always != nil}
	if d, _ = all.decision(r, elsewhere, rule); d.Decision != elicit.ApprovedAlways {
		return d, 0
	}
	offered, err := b.offer(r)
	rule.words, rule.confined = offered.Words(), r.Subject.Lasting().Hostname == ""
	rule.offered = !errors.Is(err, rulefile.ErrNone) && (err != nil || r.Question.Always.Words == rule.words)
	var kept rulefile.Kept
	if rule.offered && err == nil {
		kept, err = b.options.Kept.Add(rulefile.Kept{Rule: offered, By: string(d.By), Principal: r.Thread.Principal})
	}
	rule.err = err
	d, _ = all.decision(r, elsewhere, rule)
	return d, kept.Number
}
