package legacy

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// lane runs methods that change one thing, one after another in the order in
// which the requests arrived. The zero lane is free.
type lane struct {
	mu   sync.Mutex
	last chan struct{} // closed when the last request in the lane has ended; nil if none came
}

// join takes the next place. before is closed when the request ahead has ended,
// and nil if there is none.
func (l *lane) join() (before <-chan struct{}, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, done := l.last, make(chan struct{})
	l.last = done
	return before, func() { close(done) }
}

// handleInOrder adds a method that changes something: requests of one lane run
// in the order of their arrival. then, which may be nil, has something to say
// after the answer. The method must be one of [Inline].
func handleInOrder[P, R any](ss *Session, m *jsonrpc.Mux, l *lane, method string, f func(context.Context, P) (R, error), then func(R)) {
	m.Handle(method, jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		count := !short[method]
		if count {
			if err := ss.limit.enter(); err != nil {
				return nil, err
			}
		}
		reply := r.Responder()
		before, leave := l.join()
		ss.turns.Go(func() {
			defer leave()
			if count {
				defer ss.limit.leave()
			}
			if before != nil {
				<-before
			}
			result, err := guarded(ss, method, func() (result R, err error) {
				var p P
				if err = r.Bind(&p); err == nil {
					err = context.Cause(ctx)
				}
				if err == nil {
					result, err = f(ctx, p)
				}
				return result, err
			})
			answer := any(result)
			if err != nil {
				answer = nil
			}
			if reply.Reply(answer, err) == nil && err == nil && then != nil {
				then(result)
			}
		})
		return nil, nil
	}))
}

// guarded calls f, which no handler's goroutine runs, and makes an error of a
// panic as the peer does.
func guarded[R any](ss *Session, method string, f func() (R, error)) (result R, err error) {
	defer func() {
		if v := recover(); v != nil {
			ss.log.Error("panic", "in", method, "value", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error: the handler panicked")
		}
	}()
	return f()
}
