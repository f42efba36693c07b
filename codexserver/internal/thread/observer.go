package thread

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Event is an event of a thread, as its observers receive it.
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

// Observer observes a thread. Its methods must not block. One that is also a [Waiter] is waited
// for.
type Observer interface {
	// Event reports an event. It is called in order, one event at a time.
	Event(e Event)
	// Asked reports a question before it is decided, and Decided how it ended. They may be
	// called by several goroutines at a time.
	Asked(r *approval.Request)
	Decided(r *approval.Request, d approval.Decision)
}

// Waiter is an observer that may not have room for an event.
type Waiter interface {
	// Ready waits until there is room for the event m, or until ctx ends. It is called
	// before events that can wait, by several goroutines at a time. If m reports the start
	// of something, that has not started yet.
	Ready(ctx context.Context, m protocol.EventMsg)
}

// Waited is an observer that is told when somebody sees a question. A rule decides others.
type Waited interface {
	// Waits reports that the turn waits for the answer, once for each place. It must not block.
	Waits(r *approval.Request)
}

// NoQuestions is the part of an observer that ignores questions.
type NoQuestions struct{}

// Asked implements [Observer].
func (NoQuestions) Asked(*approval.Request) {}

// Decided implements [Observer].
func (NoQuestions) Decided(*approval.Request, approval.Decision) {}

// CallObserver observes the turns of one call, for metrics and traces.
type CallObserver interface {
	// Turn reports that a turn of a thread begins, and how many tokens the thread has used
	// before. It returns nil to not observe the turn.
	Turn(thread string, used protocol.TokenUsage) TurnObserver
}

// TurnObserver observes one turn, until its end.
type TurnObserver interface {
	Observer
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

// observed returns f, a turn, with its observer, if there is one.
func (t *Thread) observed(by CallObserver, f func(context.Context) error) func(context.Context) error {
	if by == nil {
		return f
	}
	return func(ctx context.Context) (err error) {
		var used protocol.TokenUsage
		if u := t.Usage(); u != nil {
			used = *u
		}
		o := by.Turn(t.ID(), used)
		if o == nil {
			return f(ctx)
		}
		t.host.observe(o)
		defer func() {
			t.host.observe()
			o.End(err)
		}()
		return f(ctx)
	}
}

// deskObserver reports events to a desk. Its board reports the decisions.
type deskObserver struct {
	NoQuestions
	desk approval.Desk
	log  *slog.Logger
}

// Event implements [Observer].
func (o deskObserver) Event(e Event) {
	if o.desk == nil {
		return
	}
	defer o.survive("Desk.Event")
	o.desk.Event(e.Thread, e.Msg)
}

// survive logs a panic of the desk.
func (o deskObserver) survive(in string) {
	if v := recover(); v != nil {
		o.log.Error("panic", "in", in, "value", v, "stack", string(debug.Stack()))
	}
}
