package thread

import (
	"context"
	"log/slog"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/stack"
)

// Event is an event of a thread, as its client receives it.
type Event struct {
	protocol.Event
	// Thread is the thread. Its id is "" before the thread has begun.
	Thread approval.Thread
	// Doing is what the turn does from then on, as a line for a person, or "".
	Doing string
	// Notice is true for a [protocol.BackgroundEvent] that the user should read now.
	Notice bool
}

// Sent reports whether clients get the event. They do not get a refusal without a remark.
func (e Event) Sent() bool {
	m, ok := e.Msg.(protocol.BackgroundEvent)
	return !ok || m.Refused == nil || m.Message != ""
}

// Observer is the client of a turn, which hears what the turn does. Its methods must not block, but for Ready.
type Observer interface {
	// Ready waits until there is room for the event m, or until ctx ends. It is called
	// before events that can wait, by several goroutines at a time. If m reports the start
	// of something, that has not started yet.
	Ready(ctx context.Context, m protocol.EventMsg)
	// Event reports an event. It is called in order, one event at a time.
	Event(e Event)
	// Waits reports that somebody sees a question of the turn, once for each place, and Decided how a
	// question ended. They may be called by several goroutines at a time.
	Waits()
	Decided(d approval.Decision)
}

// CallObserver observes the turns of one call, for metrics and traces. It is told that a turn of a thread begins, and how
// many tokens the thread has used before. It returns nil to not observe the turn.
type CallObserver func(thread string, used protocol.TokenUsage) TurnObserver

// TurnObserver observes one turn, until its end.
type TurnObserver interface {
	// Event reports an event. It is called in order, one event at a time.
	Event(m protocol.EventMsg)
	// Asked reports a question before it is decided, and Decided how it ended. They may be
	// called by several goroutines at a time.
	Asked(r *approval.Request)
	Decided(r *approval.Request, d approval.Decision)
	// End reports the end of the turn, with what [Turn.Run] returns.
	End(err error)
}

type observerKey struct{}

// Observed returns a context of a call that o observes.
func Observed(ctx context.Context, o CallObserver) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

// ObserverOf returns the observer of the call with that context, or nil.
func ObserverOf(ctx context.Context) CallObserver {
	o, _ := ctx.Value(observerKey{}).(CallObserver)
	return o
}

// desk reports events to a desk.
type desk struct {
	approval.Desk // or nil
	log           *slog.Logger
}

// event reports an event of a thread. A panic of the desk is logged.
func (d desk) event(t approval.Thread, m protocol.EventMsg) {
	if d.Desk == nil {
		return
	}
	_ = stack.Guard(d.log, "Desk.Event", func() error { d.Event(t, m); return nil })
}
