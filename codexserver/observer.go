package codexserver

import (
	"context"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Observer receives what a server does, for metrics and traces. It must be safe for
// concurrent use, and its methods must not block.
type Observer interface {
	// Begin reports the start of a request and returns its observer; nil observes
	// nothing. ctx is the context of the call of [Server.Run] or of the connection.
	Begin(ctx context.Context, r *Request) CallObserver
}

// Request describes a request to an [Observer].
type Request struct {
	// Principal is the user who sent the request; "" if the server has only one user.
	Principal string
	// RPC is the request. The observer must not change or keep it. Nil means a call of
	// [Server.Run], or a turn that continues.
	RPC *jsonrpc.Request
	// Continues is the tool that began a turn in another server, which was killed. No request waits for
	// the turn, so the observed one ends at once.
	Continues string
}

// CallObserver receives what one request does. Turns that it starts may outlive it.
type CallObserver interface {
	// Turn reports the start of a turn and returns its observer; nil observes nothing.
	// used is what the thread has used before.
	Turn(thread string, used protocol.TokenUsage) TurnObserver
	// End reports the end of the request; err is nil unless it failed.
	End(err error)
}

// TurnObserver receives what happens in one turn.
type TurnObserver interface {
	// Event reports an event of the turn. Events are reported in order; the first one is the
	// message of the user.
	Event(m protocol.EventMsg)
	// Asked and Decided report a question and its decision, with the same request. They
	// may be called by several goroutines at a time.
	Asked(r *approval.Request)
	Decided(r *approval.Request, d approval.Decision)
	// End reports the end of the turn. err is nil, an *engine.TurnError for a turn that
	// failed, or an *engine.AbortError for one that was interrupted.
	End(err error)
}

// turns returns a CallObserver as package thread has it.
func turns(o CallObserver) thread.CallObserver {
	return func(id string, used protocol.TokenUsage) thread.TurnObserver { return o.Turn(id, used) }
}

// continued is an [mcp.Observe].
func (o *Options) continued(ctx context.Context, principal, tool string) context.Context {
	if o.Observer == nil {
		return ctx
	}
	return thread.Observed(ctx, func(id string, used protocol.TokenUsage) thread.TurnObserver {
		call := o.Observer.Begin(context.Background(), &Request{Principal: principal, Continues: tool})
		if call == nil {
			return nil
		}
		defer call.End(nil)
		return call.Turn(id, used)
	})
}

var errPanicked = errors.New("the handler panicked")

// observed returns a handler that reports each request to the server's observer and calls h.
func (s *Server) observed(principal string, h jsonrpc.Handler) jsonrpc.Handler {
	if s.observer == nil {
		return h
	}
	return jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if r.IsNotification() {
			return h.ServeRPC(ctx, r)
		}
		o := s.observer.Begin(ctx, &Request{Principal: principal, RPC: r})
		if o == nil {
			return h.ServeRPC(ctx, r)
		}
		ended := errPanicked
		defer func() { o.End(ended) }()
		result, err := h.ServeRPC(thread.Observed(ctx, turns(o)), r)
		ended = err
		return result, err
	})
}
