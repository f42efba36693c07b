package methods

import (
	"context"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// lane runs requests that change the same thing one after another, in the order in which
// they arrived. The zero lane is free.
type lane struct {
	last atomic.Pointer[chan struct{}] // closed when the last request in the lane has ended; nil before the first
}

// join adds a request to the lane. before is closed when the request before it has ended;
// it is nil for the first. The caller must call leave.
func (l *lane) join() (before <-chan struct{}, leave func()) {
	done := make(chan struct{})
	if last := l.last.Swap(&done); last != nil {
		before = *last
	}
	return before, func() { close(done) }
}

// handleInOrder adds a method that changes something. Requests of one lane run in the order
// of their arrival. then, unless nil, is called after a successful answer. The method must
// be one of [Inline].
func handleInOrder[P, R any](ss *session, m *jsonrpc.Mux, l *lane, method string, f func(context.Context, P) (R, error), then func(R)) {
	m.Handle(method, jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		done, err := ss.client.Enter()
		if err != nil {
			return nil, err
		}
		before, leave := l.join()
		ss.client.Client().Later(r, func() (any, error) {
			if before != nil {
				<-before
			}
			var p P
			if err := r.Bind(&p); err != nil {
				return nil, err
			}
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			return f(ctx, p)
		}, func(result any) {
			if then != nil {
				then(result.(R))
			}
		}, func() {
			leave()
			done()
		})
		return nil, nil
	}))
}
