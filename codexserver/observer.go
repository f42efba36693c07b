package codexserver

import (
	"context"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Observer sees what a server does, for metrics and traces. It is safe for concurrent
// use, and its methods do not block. It does not see turns that methods of September
// 2025 begin.
type Observer interface {
	// Begin reports that a request begins, and returns what observes it. Nil observes
	// nothing of it. ctx is that of [Server.Run]; of a transport that has a method
	// RequestContext(jsonrpc.ID) context.Context it is what that returns, with the
	// values of an HTTP request say.
	Begin(ctx context.Context, r *Request) CallObserver
}

// Request is what an [Observer] learns of a request.
type Request struct {
	// Principal is whose request it is; "" where a server has one user.
	Principal string
	// RPC is the request, which the observer does not change or keep. Nil is
	// [Server.Run].
	RPC *jsonrpc.Request
}

// CallObserver sees one request, and the turns that it begins. They may outlive it.
type CallObserver interface {
	// Turn reports that a turn of a thread begins, which has used that many tokens
	// before. Nil observes nothing of it.
	Turn(thread string, used protocol.TokenUsage) TurnObserver
	// End reports the answer to the request, which is an error or not.
	End(err error)
}

// TurnObserver sees one turn.
type TurnObserver interface {
	// Event reports an event of the turn. It is called in order.
	Event(m protocol.EventMsg)
	// Asked and Decided report a question and its end, from several goroutines at a
	// time. Both have the same request.
	Asked(r *approval.Request)
	Decided(r *approval.Request, d approval.Decision)
	// End reports the end of the turn. It is nil, an *engine.TurnError, or an
	// *engine.AbortError for a turn that was interrupted.
	End(err error)
}

// turns are the turns of a call, as package thread reports them.
type turns struct{ CallObserver }

// Turn implements [thread.CallObserver].
func (t turns) Turn(id string, used protocol.TokenUsage) thread.TurnObserver {
	if o := t.CallObserver.Turn(id, used); o != nil {
		return o
	}
	return nil
}

// requestContext is a transport that knows the context in which a request came.
type requestContext interface {
	RequestContext(id jsonrpc.ID) context.Context
}

var errPanicked = errors.New("the handler panicked")

// observed returns h with the server's observer of each request, which comes over t.
func (s *Server) observed(principal string, t jsonrpc.Transport, h jsonrpc.Handler) jsonrpc.Handler {
	if s.observer == nil {
		return h
	}
	return jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if r.IsNotification() {
			return h.ServeRPC(ctx, r)
		}
		came := ctx
		if t, ok := t.(requestContext); ok {
			came = t.RequestContext(r.ID)
		}
		o := s.observer.Begin(came, &Request{Principal: principal, RPC: r})
		if o == nil {
			return h.ServeRPC(ctx, r)
		}
		ended := errPanicked
		defer func() { o.End(ended) }()
		result, err := h.ServeRPC(thread.Observed(ctx, turns{o}), r)
		ended = err
		return result, err
	})
}
