package thread

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// CallObserver observes the turns of one call.
type CallObserver interface {
	// Turn reports that a turn of a thread begins, and how many tokens the thread has used
	// before. It returns nil to not observe the turn.
	Turn(thread string, used protocol.TokenUsage) TurnObserver
}

// TurnObserver sees one turn, in addition to its watcher. Its methods must not block.
type TurnObserver interface {
	// Event reports an event of the turn. It is called in order.
	Event(m protocol.EventMsg)
	// Asked and Decided report a question, from several goroutines at a time.
	Asked(r *approval.Request)
	Decided(r *approval.Request, d approval.Decision)
	// End reports the end of the turn, with what [Thread.Turn] returns.
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

// observed returns f, a turn that a attends, with its observer.
func (t *Thread) observed(a Attendance, f func(context.Context) error) func(context.Context) error {
	if a.Observer == nil {
		return f
	}
	return func(ctx context.Context) (err error) {
		var used protocol.TokenUsage
		if u := t.Usage(); u != nil {
			used = *u
		}
		o := a.Observer.Turn(t.ID(), used)
		if o == nil {
			return f(ctx)
		}
		t.host.observe(o)
		defer func() {
			t.host.observe(nil)
			o.End(err)
		}()
		return f(ctx)
	}
}

// observe sets the observer. Nil removes it.
func (h *host) observe(o TurnObserver) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observer = o
}
