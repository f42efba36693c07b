package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Results and errors whose own methods panic, or end the goroutine.
type (
	panicError   struct{}
	panicIs      struct{ error }
	nilError     struct{ text string }
	panicMarshal struct{}
	exitMarshal  struct{}
	exit         struct{} // instead of a result
)

func (panicError) Error() string                  { panic("in Error") }
func (panicIs) Is(error) bool                     { panic("in Is") }
func (panicIs) As(any) bool                       { panic("in As") }
func (e *nilError) Error() string                 { return e.text }
func (panicMarshal) MarshalJSON() ([]byte, error) { panic("in MarshalJSON") }
func (exitMarshal) MarshalJSON() ([]byte, error)  { runtime.Goexit(); return nil, nil }

// TestPanics lets every value that a handler returns panic, in every way to answer a request.
// A panic fails only its own request.
func TestPanics(t *testing.T) {
	const encoding = "internal error: encoding the answer panicked"
	for name, tc := range map[string]struct {
		result any
		err    error
		want   string
		logged string // the panic in the log
	}{
		"it ends its goroutine":     {exit{}, nil, "internal error: handler ended its goroutine", ""},
		"nil *Error":                {nil, (*jsonrpc.Error)(nil), "internal error: the handler returned a nil *Error", ""},
		"nil of another type":       {nil, (*nilError)(nil), encoding, "runtime error: invalid memory address or nil pointer dereference"},
		"Error panics":              {nil, panicError{}, encoding, "in Error"},
		"As panics":                 {nil, panicIs{errors.New("x")}, encoding, "in As"},
		"MarshalJSON panics":        {panicMarshal{}, nil, encoding, "in MarshalJSON"},
		"deep in the result":        {map[string]any{"a": []any{panicMarshal{}}}, nil, encoding, "in MarshalJSON"},
		"MarshalJSON never returns": {exitMarshal{}, nil, encoding, ""},
	} {
		for _, how := range []string{"handler", "inline", "detached"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var log bytes.Buffer
					h := jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
						if r.Method == "well" {
							return 1, nil
						}
						var w *jsonrpc.Responder
						if r.Method == "detached" {
							w = r.Responder()
						}
						if _, exits := tc.result.(exit); exits {
							runtime.Goexit()
						}
						if w != nil {
							go func() { _ = w.Reply(tc.result, tc.err) }()
							return nil, nil
						}
						return tc.result, tc.err
					})
					r := newRaw(t, h, &jsonrpc.Options{Inline: jsonrpc.Methods("inline"), Logger: slog.New(slog.NewJSONHandler(&log, nil))})
					ended := r.run(context.Background())
					r.send(`{"jsonrpc":"2.0","id":1,"method":"` + how + `"}`)
					r.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"` + tc.want + `"}}`)
					r.send(`{"jsonrpc":"2.0","id":2,"method":"well"}`)
					r.want(`{"jsonrpc":"2.0","id":2,"result":1}`)
					_ = r.in.Close()
					if err := <-ended; err != nil { // at once: nothing is unfinished
						t.Error(err)
					}
					var record struct{ Method, Panic string }
					if log.Len() > 0 {
						must(t, json.Unmarshal(log.Bytes(), &record))
					}
					if record.Panic != tc.logged || tc.logged != "" && record.Method != how {
						t.Errorf("logged %+v, want the panic %q of %s", record, tc.logged, how)
					}
				})
			})
		}
	}
}

// TestPanicInCause has a cause that panics. The cause belongs to the caller, and a goroutine
// of the context package sends its text to the other side.
func TestPanicInCause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRaw(t, nil, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
		r.run(context.Background())
		ctx, cancel := context.WithCancelCause(context.Background())
		c := r.p.Start(ctx, "x", nil)
		r.want(`{"jsonrpc":"2.0","id":0,"method":"x"}`)
		cancel(panicError{})
		synctest.Wait()
		r.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
		if err := c.Result(nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
