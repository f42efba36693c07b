package approve

import (
	"cmp"
	"context"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

// Place shows questions to a person: a client or, with By, something else. A [Board] calls it from several
// goroutines at a time.
type Place struct {
	// By names the place in the record. Default: it is a client.
	By approval.Decider
	// Ask shows the question until it is answered or ctx ends, and returns the outcome.
	// It must return soon after ctx ends. An error means that the place could not show the
	// question.
	Ask func(ctx context.Context, r *approval.Request) (elicit.Outcome, error)
	// Client is the client that answers. Nil is the program that runs the server.
	Client *Client
	// Can reports whether a person can see questions at the client now. Nil is false.
	Can func() bool
}

// decider names the place in the record.
func (p *Place) decider() approval.Decider { return cmp.Or(p.By, p.Client.by()) }

// shows reports whether a person sees the questions.
func (p *Place) shows() bool { return p.By != "" || p.Can != nil && p.Can() }

// isClient reports whether a place with a name is a client.
func isClient(by approval.Decider) bool { return by == approval.ByClient || by == approval.ByTerminal }

// Stopped says that a person ended a turn on the approvals page, by an answer or without a question.
const Stopped = "a person pressed Stop on the approvals page"

// placeOf returns the place of a desk.
func placeOf(desk approval.Desk, o elicit.Options) *Place {
	if o.Who = name(desk.Name()); desk.Name() == approval.ByPage {
		o.Stopped = Stopped
	}
	return &Place{By: desk.Name(), Ask: func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		answer, err := desk.Ask(ctx, r)
		switch {
		case err == nil:
			return r.Question.Read(answer, &o), nil
		case ctx.Err() != nil:
			return r.Question.ReadError(ctx.Err(), &o), nil
		}
		return elicit.Outcome{}, err
	}}
}
