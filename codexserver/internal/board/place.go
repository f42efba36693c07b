package board

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

// Place shows questions to a person. A [Board] calls it from several goroutines at a time.
type Place interface {
	// Decider names the place in the record.
	Decider() approval.Decider
	// Ask shows the question until it is answered or ctx ends, and returns the outcome.
	// It must return soon after ctx ends. An error means that the place could not show the
	// question.
	Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error)
}

// deskPlace adapts a desk to a place.
type deskPlace struct {
	desk    approval.Desk
	options *elicit.Options
}

func (deskPlace) Decider() approval.Decider { return approval.ByDesk }

func (p deskPlace) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	answer, err := p.desk.Ask(ctx, r)
	switch {
	case err == nil:
		return r.Question.Read(answer, p.options), nil
	case ctx.Err() != nil:
		return r.Question.ReadError(ctx.Err(), p.options), nil
	}
	return elicit.Outcome{}, err
}
