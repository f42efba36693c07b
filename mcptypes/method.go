package mcptypes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Caller sends a request and waits for its result, which it decodes into the
// pointer result. The peer of package jsonrpc is one.
type Caller interface {
	// Call returns the error of the answer, or why no answer came.
	Call(ctx context.Context, method string, params, result any) error
}

// Notifier sends a notification. The peer of package jsonrpc is one.
type Notifier interface {
	// Notify does not wait for the other side.
	Notify(ctx context.Context, method string, params any) error
}

// Registrar takes the function that serves a method. The function gets the
// params as they were sent, nil when there were none, and returns the result;
// for a notification the result is nil and the error is for the log. Its error
// is a [*DecodeError] when the params are not what the schema asks for, which
// a server answers with the JSON-RPC code -32602. The mux of package jsonrpc is
// a Registrar.
type Registrar interface {
	// HandleRaw takes f for one method.
	HandleRaw(method string, f func(ctx context.Context, params json.RawMessage) (any, error))
}

// Method is a request of the protocol: its name with the types of its params
// and of its result.
type Method[P, R any] struct {
	name     string
	required bool
}

// NewMethod returns the request with a name on the wire, such as one of an
// extension. A request without params is faulty if required is set.
func NewMethod[P, R any](name string, required bool) Method[P, R] {
	return Method[P, R]{name, required}
}

// Name returns the method's name on the wire.
func (m Method[P, R]) Name() string { return m.name }

// ParamsRequired reports whether a request without params is faulty.
func (m Method[P, R]) ParamsRequired() bool { return m.required }

// Call sends the request to c's other side and returns its result. A nil params
// sends none.
func (m Method[P, R]) Call(ctx context.Context, c Caller, params *P) (*R, error) {
	result := new(R)
	if err := c.Call(ctx, m.name, orNone(params), result); err != nil {
		return nil, err
	}
	return result, nil
}

// Handle serves the request with f. Params that were not sent are the zero P
// where the schema lets them be absent.
func (m Method[P, R]) Handle(r Registrar, f func(context.Context, *P) (*R, error)) {
	r.HandleRaw(m.name, func(ctx context.Context, raw json.RawMessage) (any, error) {
		params, err := decodeParams[P](raw, m.name, m.required)
		if err != nil {
			return nil, err
		}
		result, err := f(ctx, params)
		if err != nil {
			return nil, err
		}
		if result == nil {
			return nil, errNoResult(m.name)
		}
		return result, nil
	})
}

func errNoResult(method string) error {
	return fmt.Errorf("mcptypes: %s: handler returned neither result nor error", method)
}

// UnionMethod is a request whose result is a union R. This version of the
// protocol has none; a tool's call in package modern is one.
type UnionMethod[P, R any] struct {
	name     string
	required bool
	decode   func([]byte, any) error
}

// NewUnionMethod returns the request with a name on the wire. The function
// decode, the Decode of R's package, reads its result.
func NewUnionMethod[P, R any](name string, required bool, decode func([]byte, any) error) UnionMethod[P, R] {
	return UnionMethod[P, R]{name, required, decode}
}

// Name returns the method's name on the wire.
func (m UnionMethod[P, R]) Name() string { return m.name }

// ParamsRequired reports whether a request without params is faulty.
func (m UnionMethod[P, R]) ParamsRequired() bool { return m.required }

// Call sends the request to c's other side and returns its result. A nil params
// sends none.
func (m UnionMethod[P, R]) Call(ctx context.Context, c Caller, params *P) (result R, err error) {
	var raw json.RawMessage
	if err := c.Call(ctx, m.name, orNone(params), &raw); err != nil {
		return result, err
	}
	return result, m.decode(raw, &result)
}

// Handle serves the request with f, as [Method.Handle] does.
func (m UnionMethod[P, R]) Handle(r Registrar, f func(context.Context, *P) (R, error)) {
	r.HandleRaw(m.name, func(ctx context.Context, raw json.RawMessage) (any, error) {
		params, err := decodeParams[P](raw, m.name, m.required)
		if err != nil {
			return nil, err
		}
		result, err := f(ctx, params)
		if err != nil {
			return nil, err
		}
		if any(result) == nil {
			return nil, errNoResult(m.name)
		}
		return result, nil
	})
}

// NotificationMethod is a notification of the protocol: its name with the type
// of its params.
type NotificationMethod[P any] struct {
	name     string
	required bool
}

// NewNotification returns the notification with a name on the wire, as
// [NewMethod] does a request.
func NewNotification[P any](name string, required bool) NotificationMethod[P] {
	return NotificationMethod[P]{name, required}
}

// Name returns the notification's name on the wire.
func (m NotificationMethod[P]) Name() string { return m.name }

// ParamsRequired reports whether a notification without params is faulty.
func (m NotificationMethod[P]) ParamsRequired() bool { return m.required }

// Notify sends the notification to n's other side. A nil params sends none.
func (m NotificationMethod[P]) Notify(ctx context.Context, n Notifier, params *P) error {
	return n.Notify(ctx, m.name, orNone(params))
}

// Handle serves the notification with f, as [Method.Handle] does a request.
func (m NotificationMethod[P]) Handle(r Registrar, f func(context.Context, *P) error) {
	r.HandleRaw(m.name, func(ctx context.Context, raw json.RawMessage) (any, error) {
		params, err := decodeParams[P](raw, m.name, m.required)
		if err != nil {
			return nil, err
		}
		return nil, f(ctx, params)
	})
}

// MethodInfo is one row of the protocol's table of methods.
type MethodInfo struct {
	Name           string // on the wire
	Params, Result string // names of the types in this package; Result is "" for a notification
	FromClient     bool   // the client may send it
	FromServer     bool   // the server may send it
}

// IsNotification reports whether the method has no result.
func (m MethodInfo) IsNotification() bool { return m.Result == "" }

func orNone[P any](params *P) any {
	if params == nil {
		return nil
	}
	return params
}

// paramsError says that the params of a request are wrong, and not something
// that its handler decoded.
type paramsError struct{ *DecodeError }

// InvalidParams returns what package jsonrpc answers.
func (e paramsError) InvalidParams() (path, why string) { return e.Path, e.Msg }

// Unwrap lets errors.As find the DecodeError.
func (e paramsError) Unwrap() error { return e.DecodeError }

func decodeParams[P any](raw json.RawMessage, method string, required bool) (*P, error) {
	params := new(P)
	if len(raw) == 0 || !required && string(raw) == "null" {
		if required {
			return nil, paramsError{&DecodeError{Msg: method + " needs params"}}
		}
		return params, nil
	}
	var err error
	if p, ok := any(params).(json.Unmarshaler); ok {
		err = p.UnmarshalJSON(raw)
	} else {
		err = json.Unmarshal(raw, params)
	}
	var wrong *DecodeError
	if errors.As(err, &wrong) {
		return nil, paramsError{wrong}
	}
	return params, err
}
