package mcp

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// lane runs requests that change the same thing one after another, in the order in which
// they arrived. The zero lane is free.
type lane struct {
	mu   sync.Mutex
	last chan struct{} // closed when the last request in the lane has ended; nil before the first
}

// join adds a request to the lane. before is closed when the request before it has ended;
// it is nil for the first. The caller must call leave.
func (l *lane) join() (before <-chan struct{}, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, done := l.last, make(chan struct{})
	l.last = done
	return before, func() { close(done) }
}

// handleInOrder adds a method that changes something. Requests of one lane run in the order
// of their arrival. then, unless nil, is called after a successful answer. The method must
// be one of [Inline].
func handleInOrder[P, R any](ss *LegacySession, m *jsonrpc.Mux, l *lane, method string, f func(context.Context, P) (R, error), then func(R)) {
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

// guarded calls f and converts a panic to an error. The peer does that only for handlers on
// its own goroutines.
func guarded[R any](ss *LegacySession, method string, f func() (R, error)) (result R, err error) {
	defer func() {
		if v := recover(); v != nil {
			ss.log.Error("panic", "in", method, "value", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error: the handler panicked")
		}
	}()
	return f()
}
