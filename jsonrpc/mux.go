package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
)

// Mux is a [Handler] that chooses by method. It may change while it serves.
type Mux struct {
	mu       sync.RWMutex // guards the fields; not held while a handler runs
	methods  map[string]Handler
	fallback Handler
}

// Handle adds a method whose params are a P and whose result is an R. Either may be struct{}. [Request.Bind] decodes P
// by exact names: a field Name without a tag does not read "name". It stays zero, as all do without params.
func Handle[P, R any](m *Mux, method string, f func(context.Context, P) (R, error)) {
	m.Handle(method, HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
		var p P
		if err := r.Bind(&p); err != nil {
			return nil, err
		}
		return f(ctx, p)
	}))
}

// HandleNotify adds a notification whose params are a P. Errors go to [Hooks].Problem. A request by
// that name is answered with null or the error.
func HandleNotify[P any](m *Mux, method string, f func(context.Context, P) error) {
	Handle(m, method, func(ctx context.Context, p P) (any, error) { return nil, f(ctx, p) })
}

// HandleRaw adds a method that decodes its params itself, nil if absent. An error that has
// InvalidParams() (path, why string) is answered like that of [Request.Bind].
func (m *Mux) HandleRaw(method string, f func(ctx context.Context, params json.RawMessage) (any, error)) {
	m.Handle(method, HandlerFunc(func(ctx context.Context, r *Request) (any, error) {
		result, err := f(ctx, r.Params)
		var wrong interface{ InvalidParams() (path, why string) }
		if errors.As(err, &wrong) {
			return nil, invalidParams(wrong.InvalidParams())
		}
		return result, err
	}))
}

// Handle adds a handler of a method, in place of one added before.
func (m *Mux) Handle(method string, h Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.methods == nil {
		m.methods = make(map[string]Handler)
	}
	m.methods[method] = h
}

// Default sets what handles the methods that nothing else was added for.
func (m *Mux) Default(h Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fallback = h
}

// ServeRPC implements [Handler].
func (m *Mux) ServeRPC(ctx context.Context, r *Request) (any, error) {
	m.mu.RLock()
	h := m.methods[r.Method]
	if h == nil {
		h = m.fallback
	}
	m.mu.RUnlock()
	if h == nil {
		return notFound(ctx, r)
	}
	return h.ServeRPC(ctx, r)
}
