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

// Client is the place of a client.
type Client struct {
	// Asks is the method Ask of the [Place].
	Asks func(ctx context.Context, r *approval.Request) (elicit.Outcome, error)
	// Host is who answers. Nil is the program that runs the server.
	Host *Host
	// Can reports whether a person can see questions there now. Nil is false.
	Can func() bool
	// Concerns reports whether the place can be asked a question. Nil is true.
	Concerns func(*approval.Request) bool
}

// Decider implements [Place].
func (c *Client) Decider() approval.Decider { return c.Host.by() }

// Ask implements [Place].
func (c *Client) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	if c.Concerns != nil && !c.Concerns(r) {
		return r.Question.ReadError(elicit.ErrUnsupported, nil), nil
	}
	return c.Asks(ctx, r)
}

// isClient reports whether a place with a name is a client.
func isClient(by approval.Decider) bool { return by == approval.ByClient || by == approval.ByTerminal }

// shows reports whether a person sees the questions at a place.
func shows(p Place) bool {
	c, ok := p.(*Client)
	return !ok || c.Can != nil && c.Can()
}

// hostOf returns the host that a place asks, or nil.
func hostOf(p Place) *Host {
	if c, ok := p.(*Client); ok {
		return c.Host
	}
	return nil
}

// Stopped says that a person ended a turn on the approvals page, by an answer or without a question.
const Stopped = "a person pressed Stop on the approvals page"

// desk is the place of an [approval.Desk].
type desk struct {
	approval.Desk
	options elicit.Options
}

// Decider implements [Place].
func (d desk) Decider() approval.Decider { return d.Name() }

// Ask implements [Place].
func (d desk) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	answer, err := d.Desk.Ask(ctx, r)
	switch {
	case err == nil:
		return r.Question.Read(answer, &d.options), nil
	case ctx.Err() != nil:
		return r.Question.ReadError(ctx.Err(), &d.options), nil
	}
	return elicit.Outcome{}, err
}
