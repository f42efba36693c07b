package approve

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

// Ask is the method Ask of a [Place].
type Ask func(ctx context.Context, r *approval.Request) (elicit.Outcome, error)

// NewPlace returns the place of a decider whose questions ask asks.
func NewPlace(by approval.Decider, ask Ask) Place { return place{by: by, ask: ask} }

// NewClient returns the place of a client whose questions ask asks. Can reports whether it shows
// questions now.
func NewClient(h *Host, can func() bool, ask Ask) Place {
	return place{by: h.by(), ask: ask, host: h, can: can}
}

// Only returns p for the questions that concern it. It cannot be asked others.
func Only(p Place, concerns func(*approval.Request) bool) Place {
	one, _ := p.(place)
	one.by, one.ask = p.Decider(), func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		if !concerns(r) {
			return r.Question.ReadError(elicit.ErrUnsupported, nil), nil
		}
		return p.Ask(ctx, r)
	}
	return one
}

// isClient reports whether a place with a name is a client.
func isClient(by approval.Decider) bool { return by == approval.ByClient || by == approval.ByTerminal }

type place struct {
	by   approval.Decider
	ask  Ask
	host *Host       // nil if it is no client, or one that cannot be asked
	can  func() bool // of a host
}

// Shows reports whether somebody sees the questions at a place.
func Shows(p Place) bool {
	one, ok := p.(place)
	switch {
	case !ok || !isClient(one.by):
		return true
	case one.host == nil:
		return false
	}
	return one.can()
}

// hostOf returns the client that a place asks, or nil.
func hostOf(p Place) *Host {
	one, _ := p.(place)
	return one.host
}

// Decider implements [Place].
func (p place) Decider() approval.Decider { return p.by }

// Ask implements [Place].
func (p place) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	return p.ask(ctx, r)
}

// Stopped says that a person ended a turn on the approvals page, by an answer or without a question.
const Stopped = "a person pressed Stop on the approvals page"

// newDesk returns a desk as a place.
func newDesk(desk approval.Desk, o *elicit.Options) Place {
	own := *o
	own.Stopped, o = Stopped, &own
	return NewPlace(desk.Name(), func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		answer, err := desk.Ask(ctx, r)
		switch {
		case err == nil:
			return r.Question.Read(answer, o), nil
		case ctx.Err() != nil:
			return r.Question.ReadError(ctx.Err(), o), nil
		}
		return elicit.Outcome{}, err
	})
}
