package jsonrpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Handler handles requests and notifications. A request is answered with what ServeRPC returns:
// the result, encoded as JSON, or the error (see [Error]). An error for a notification is reported
// to [Hooks].Problem. The context ends when the other side cancels the request (cause
// [ErrCancelled]), when the connection ends, and when the request has been answered.
type Handler interface {
	ServeRPC(ctx context.Context, r *Request) (any, error)
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, r *Request) (any, error)

// ServeRPC calls f.
func (f HandlerFunc) ServeRPC(ctx context.Context, r *Request) (any, error) { return f(ctx, r) }

// Request is an inbound request or notification. It is the handler's to keep; Params may share
// memory with other messages: clone what you keep.
type Request struct {
	ID     ID              // the zero ID for a notification
	Method string          // never ""
	Params json.RawMessage // an object or an array; nil when absent or null

	// Set by newRequest and never changed.
	peer  *Peer
	batch *batch // nil for a request that came alone
	size  int    // what it counts for while it waits

	// See requestContext. It ends after the answer was queued.
	ctx atomic.Pointer[realContext]

	// Guarded by peer.p.mu. Each is set once and stays, except that a panic takes back
	// detached.
	cancelled bool // by the other side
	detached  bool // Responder was called
	kept      bool // has a place though its handler has returned; not changed once answered
	answered  bool
}

// IsNotification reports whether no answer is expected.
func (r *Request) IsNotification() bool { return r.ID.IsZero() }

// Peer returns the peer that received the request, to call back.
func (r *Request) Peer() *Peer { return r.peer }

// Bind decodes the params into v, strictly: exact member names, no duplicate
// members, valid UTF-8. Absent params are read as {}. The error is an
// [*Error] with CodeInvalidParams that has the JSON path of the fault in its
// message and, as {"path": "/a/0"}, its data.
func (r *Request) Bind(v any) error {
	params := r.Params
	// Not copied: the params belong to the handler.
	if raw, ok := v.(*json.RawMessage); ok {
		*raw = params
		return nil
	}
	// Absent params and {} mean the same to a method whose members are all optional.
	if params == nil {
		params = json.RawMessage("{}")
	}
	err := jsonx.Unmarshal(params, v)
	if err == nil {
		return nil
	}
	return invalidParams(explain(err))
}

// invalidParams is the answer to params that are wrong at a path.
func invalidParams(path, why string) *Error {
	// The path is in data for programs, and in the message for people.
	data := appendString([]byte(`{"path":`), path)
	return &Error{
		Code:    CodeInvalidParams,
		Message: "invalid params at " + cmp.Or(path, "the top") + ": " + why,
		Data:    append(data, '}'),
	}
}

// located is an error of a type's own decoding that says where it is. Below
// another type its path starts at that type's place.
type located interface {
	error
	JSONPointer() string
}

// explain returns where decoding failed and why, without Go's type names: the text is sent to
// the other side, whose author may not know Go.
func explain(err error) (path, why string) {
	var own located
	// First: such an error knows its place within the type, which the decoder around it
	// cannot see.
	if errors.As(err, &own) {
		var at *jsonx.SemanticError
		if errors.As(err, &at) {
			path = string(at.JSONPointer)
		}
		return path + own.JSONPointer(), reason(own)
	}
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		return string(syn.JSONPointer), syn.Err.Error()
	}
	var sem *jsonx.SemanticError
	if !errors.As(err, &sem) {
		return "", err.Error()
	}
	// The text of a SemanticError names Go types, which mean nothing to the other side.
	path = string(sem.JSONPointer)
	switch {
	case sem.Err != nil:
		return path, sem.Err.Error()
	case sem.GoType != nil:
		return path, "found " + kindName(sem.JSONKind) + ", want " + wanted(sem.GoType)
	}
	return path, "unexpected " + kindName(sem.JSONKind)
}

// reason returns a located error's text without the path before it.
func reason(e located) string {
	_, why, found := strings.Cut(e.Error(), e.JSONPointer()+": ")
	if !found {
		return e.Error()
	}
	return why
}

// kindName returns how a person would call a value that was found.
func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "another value"
}

// wanted returns which kind of JSON value decodes into a Go type.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return "a boolean"
	case k == reflect.String:
		return "a string"
	case reflect.Int <= k && k <= reflect.Uintptr:
		return "an integer"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	case k == reflect.Slice || k == reflect.Array:
		return "an array"
	case k == reflect.Struct || k == reflect.Map:
		return "an object"
	}
	return "another value"
}

// Responder detaches the request: what ServeRPC returns is ignored, and Reply answers, from any
// goroutine. Until then the context lives on, and the request counts as being handled.
func (r *Request) Responder() *Responder {
	// Read by next when ServeRPC returns, which may be on another goroutine than this.
	r.peer.mu.Lock()
	r.detached = true
	r.peer.mu.Unlock()
	return &Responder{r}
}

// Responder answers one request later. Until it does, the other side waits.
type Responder struct{ r *Request }

var errAnswered = errors.New("jsonrpc: request is already answered")

// Reply answers as a return from ServeRPC would. It waits while [Options].MaxUnsent bytes are
// unsent, and fails with [ErrClosed] when the connection has ended and the answer is lost. A second
// Reply is an error; one to a notification, or to a cancelled request that must not be answered, does
// nothing.
func (w *Responder) Reply(result any, err error) error {
	return w.r.peer.answer(w.r, result, err, elsewhere)
}

// requestContext is the context of a request. Most handlers never look at theirs, so the real one is made when it
// is first used. A flood of notifications takes a third longer without it.
type requestContext Request

// realContext is made on demand: it costs a few allocations.
type realContext struct {
	context.Context
	cancel context.CancelCauseFunc
}

// over is in place of the real context of a request that was answered before anything used it.
var over = new(realContext)

// real returns the real context. All that is derived from this one hangs on it, so there is
// only one.
func (c *requestContext) real() context.Context {
	if (*Request)(c).IsNotification() { // cannot be cancelled
		return c.peer.ctx.base
	}
	for {
		r := c.ctx.Load()
		if r != nil && r != over {
			return r
		}
		made := new(realContext)
		made.Context, made.cancel = context.WithCancelCause(c.peer.ctx.base)
		if r == over {
			made.cancel(context.Canceled)
		}
		if c.ctx.CompareAndSwap(r, made) {
			return made
		}
		made.cancel(nil) // another goroutine was faster
	}
}

// end ends the context with a cause. The first cause stays.
func (c *requestContext) end(cause error) {
	if cause == context.Canceled && c.ctx.CompareAndSwap(nil, over) {
		return
	}
	c.real()
	c.ctx.Load().cancel(cause)
}

// The four methods of context.Context. The deadline is the peer's, since a request has none of its own.

func (c *requestContext) Deadline() (time.Time, bool) { return c.peer.ctx.base.Deadline() }
func (c *requestContext) Done() <-chan struct{}       { return c.real().Done() }
func (c *requestContext) Err() error                  { return c.real().Err() }

func (c *requestContext) Value(key any) any {
	if _, ok := key.(requestKey); ok {
		return (*Request)(c) // no need for the real one
	}
	return c.real().Value(key)
}

// requestKey is the key under which the context of a request holds it.
type requestKey struct{}

// RequestFrom returns the request or notification that ctx is of, or nil.
func RequestFrom(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}
