package codexserver

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Observer receives what a server does, for metrics and traces. It must be safe for
// concurrent use, and its methods must not block.
type Observer interface {
	// Request reports the start of a request, which the observer must not change or keep. The function that it
	// returns, unless nil, is called at its end. Turns that the request starts may outlive it.
	Request(r *jsonrpc.Request) (end func())
	// Turn reports the start of a turn of a thread, however it was begun, and returns its observer; nil
	// observes nothing.
	Turn(thread string) TurnObserver
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

// observed returns a handler that notes and reports each request, and calls h.
func (s *Server) observed(h jsonrpc.Handler) jsonrpc.Handler {
	return jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		s.heard.Store(time.Now().UnixNano())
		if s.observer != nil && !r.IsNotification() {
			if end := s.observer.Request(r); end != nil {
				defer end()
			}
		}
		return h.ServeRPC(ctx, r)
	})
}

// Idle reports whether no turn runs or is queued, and when a client sent something last; the zero time if none did.
func (s *Server) Idle() (idle bool, heard time.Time) {
	if at := s.heard.Load(); at != 0 {
		heard = time.Unix(0, at)
	}
	return !s.threads.Working(), heard
}
