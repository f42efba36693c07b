package mcptypes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Caller sends a request, waits for its result and decodes it into the pointer result. The
// peer of package jsonrpc is a Caller.
type Caller interface {
	// Call returns the error of the answer, or the reason for which no answer arrived.
	Call(ctx context.Context, method string, params, result any) error
}

// Notifier sends a notification. The peer of package jsonrpc is a Notifier.
type Notifier interface {
	// Notify does not wait for the other side.
	Notify(ctx context.Context, method string, params any) error
}

// Registrar registers the function that serves a method. The function gets the params as
// they were sent, or nil if there were none, and returns the result. For a notification the
// result is nil and the error is for the log. If the params do not follow the schema, the
// error is a [*DecodeError]; a server answers it with the JSON-RPC code -32602. The mux of
// package jsonrpc is a Registrar.
type Registrar interface {
	// HandleRaw registers f for one method.
	HandleRaw(method string, f func(ctx context.Context, params json.RawMessage) (any, error))
}

// Method is a request of the protocol: its name and the types of its params and its result.
type Method[P, R any] struct {
	name     string
	required bool
}

// paramsOf is a pointer to P that decodes itself.
type paramsOf[P any] interface {
	*P
	json.Unmarshaler
}

// NewMethod returns the request with that name on the wire, for example a request of an
// extension. required means that the request must have params. A pointer to P must have the method
// UnmarshalJSON, as generated types have.
func NewMethod[P, R any, D paramsOf[P]](name string, required bool) Method[P, R] {
	return Method[P, R]{name, required}
}

// Name returns the method's name on the wire.
func (m Method[P, R]) Name() string { return m.name }

// ParamsRequired reports whether the request must have params.
func (m Method[P, R]) ParamsRequired() bool { return m.required }

// DecodeParams decodes the params of the request; raw is empty if there are none. If they are
// optional and absent, the result is the zero P. The error of wrong params wraps a [*DecodeError].
func (m Method[P, R]) DecodeParams(raw []byte) (*P, error) {
	return decodeParams[P](raw, m.name, m.required)
}

// Call sends the request with c and returns its result. Without params, pass nil.
func (m Method[P, R]) Call(ctx context.Context, c Caller, params *P) (*R, error) {
	result := new(R)
	if err := c.Call(ctx, m.name, orNone(params), result); err != nil {
		return nil, err
	}
	return result, nil
}

// Handle registers f to serve the request. If the params are optional and absent, f gets
// the zero P.
func (m Method[P, R]) Handle(r Registrar, f func(context.Context, *P) (*R, error)) {
	handle(r, m.name, m.required, f)
}

// handle registers f, whose result is not the zero R.
func handle[P any, R comparable](r Registrar, method string, required bool, f func(context.Context, *P) (R, error)) {
	r.HandleRaw(method, func(ctx context.Context, raw json.RawMessage) (any, error) {
		params, err := decodeParams[P](raw, method, required)
		if err != nil {
			return nil, err
		}
		result, err := f(ctx, params)
		var none R
		switch {
		case err != nil:
			return nil, err
		case result == none:
			return nil, fmt.Errorf("mcptypes: %s: handler returned neither result nor error", method)
		}
		return result, nil
	})
}

// UnionMethod is a [Method] whose result is a union R. This version of the protocol has no
// such request; tools/call in package modern is one.
type UnionMethod[P any, R comparable] struct {
	Method[P, R]
	decode func([]byte, any) error
}

// NewUnionMethod returns the request with that name on the wire, as [NewMethod] does. decode reads
// the result; pass the Decode of R's package.
func NewUnionMethod[P any, R comparable, D paramsOf[P]](name string, required bool,
	decode func([]byte, any) error) UnionMethod[P, R] {
	return UnionMethod[P, R]{Method[P, R]{name, required}, decode}
}

// Call sends the request with c and returns its result. Without params, pass nil.
func (m UnionMethod[P, R]) Call(ctx context.Context, c Caller, params *P) (result R, err error) {
	var raw json.RawMessage
	if err := c.Call(ctx, m.name, orNone(params), &raw); err != nil {
		return result, err
	}
	return result, m.decode(raw, &result)
}

// Handle registers f to serve the request, as [Method.Handle] does.
func (m UnionMethod[P, R]) Handle(r Registrar, f func(context.Context, *P) (R, error)) {
	handle(r, m.name, m.required, f)
}

// NotificationMethod is a notification of the protocol: its name and the type of its
// params.
type NotificationMethod[P any] struct {
	name     string
	required bool
}

// NewNotification returns the notification with that name on the wire, as [NewMethod] does for a
// request. required means that it must have params.
func NewNotification[P any, D paramsOf[P]](name string, required bool) NotificationMethod[P] {
	return NotificationMethod[P]{name, required}
}

// Name returns the notification's name on the wire.
func (m NotificationMethod[P]) Name() string { return m.name }

// ParamsRequired reports whether the notification must have params.
func (m NotificationMethod[P]) ParamsRequired() bool { return m.required }

// DecodeParams decodes the params of the notification; raw is empty if there are none. If they are
// optional and absent, the result is the zero P. The error of wrong params wraps a [*DecodeError].
func (m NotificationMethod[P]) DecodeParams(raw []byte) (*P, error) {
	return decodeParams[P](raw, m.name, m.required)
}

// Notify sends the notification with n. Without params, pass nil.
func (m NotificationMethod[P]) Notify(ctx context.Context, n Notifier, params *P) error {
	return n.Notify(ctx, m.name, orNone(params))
}

// Handle registers f to serve the notification, as [Method.Handle] does for a request.
func (m NotificationMethod[P]) Handle(r Registrar, f func(context.Context, *P) error) {
	r.HandleRaw(m.name, func(ctx context.Context, raw json.RawMessage) (any, error) {
		params, err := m.DecodeParams(raw)
		if err != nil {
			return nil, err
		}
		return nil, f(ctx, params)
	})
}

func orNone[P any](params *P) any {
	if params == nil {
		return nil
	}
	return params
}

// paramsError is the error of a request's params. It distinguishes them from other values
// that a handler decodes.
type paramsError struct{ *DecodeError }

// InvalidParams returns the path and the message that package jsonrpc answers.
func (e paramsError) InvalidParams() (path, why string) { return e.Path, e.Msg }

// Unwrap lets errors.As find the DecodeError.
func (e paramsError) Unwrap() error { return e.DecodeError }

func decodeParams[P any](raw []byte, method string, required bool) (*P, error) {
	params := new(P)
	if len(raw) == 0 || !required && string(raw) == "null" {
		if required {
			return nil, paramsError{&DecodeError{Package: "mcptypes", Msg: method + " needs params"}}
		}
		return params, nil
	}
	p, ok := any(params).(json.Unmarshaler)
	if !ok { // the method is not made by the functions above
		return nil, fmt.Errorf("mcptypes: cannot decode into %T", params)
	}
	err := p.UnmarshalJSON(raw)
	if wrong, ok := errors.AsType[*DecodeError](err); ok {
		return nil, paramsError{wrong}
	}
	return params, err
}
