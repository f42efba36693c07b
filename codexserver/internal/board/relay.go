package board

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

// maxHeld is how long a relay holds a question that has no time-out.
const maxHeld = 24 * time.Hour

// Relay is a place whose questions are asked at other places, those of an approver's
// clients. A question waits until there is such a client. Relay is safe for concurrent use.
type Relay struct {
	places
	options *elicit.Options
}

// NewRelay returns a relay without places, for boards with these options.
func NewRelay(o *Options) *Relay {
	where := func(approval.Decider) string { return "by another client" }
	return &Relay{places: places{log: o.logger(), keep: true, where: where}, options: &o.Questions}
}

// Decider implements [Place].
func (*Relay) Decider() approval.Decider { return approval.ByApprover }

// Ask implements [Place]. A client of the approver that leaves, fails or cannot show the
// question does not decide it.
func (r *Relay) Ask(ctx context.Context, request *approval.Request) (elicit.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, maxHeld)
	defer cancel()
	if best, _ := r.askAll(ctx, request, nil); best.answers() {
		return best.out, nil
	}
	return request.Question.ReadError(ctx.Err(), r.options), nil
}
