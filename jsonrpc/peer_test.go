package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// text is the params and result of most test methods.
type text struct {
	Text string `json:"text"`
}

// connect runs two peers over an in-memory pipe until the test ends.
func connect(t *testing.T, ha, hb jsonrpc.Handler, oa, ob *jsonrpc.Options) (a, b *jsonrpc.Peer) {
	t.Helper()
	ta, tb := jsonrpc.Pipe()
	a, b = jsonrpc.NewPeer(ta, ha, oa), jsonrpc.NewPeer(tb, hb, ob)
	for _, p := range []*jsonrpc.Peer{a, b} {
		go func() { _ = p.Run(context.Background()) }()
	}
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
		<-a.Done()
		<-b.Done()
	})
	return a, b
}

func echoMux() *jsonrpc.Mux {
	m := new(jsonrpc.Mux)
	jsonrpc.Handle(m, "echo", func(_ context.Context, p text) (text, error) { return p, nil })
	jsonrpc.Handle(m, "fail", func(_ context.Context, p text) (text, error) { return text{}, errors.New(p.Text) })
	jsonrpc.Handle(m, "code", func(context.Context, struct{}) (any, error) { return nil, jsonrpc.CodeInvalidParams })
	jsonrpc.Handle(m, "hang", func(ctx context.Context, _ struct{}) (any, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	jsonrpc.Handle(m, "panic", func(context.Context, struct{}) (any, error) { panic("boom") })
	m.HandleRaw("raw", func(_ context.Context, p json.RawMessage) (any, error) { return p, nil })
	return m
}

func TestCall(t *testing.T) {
	a, _ := connect(t, nil, echoMux(), nil, nil)
	ctx := context.Background()

	var got text
	must(t, a.Call(ctx, "echo", text{"hé\n"}, &got))
	if diff := cmp.Diff(text{"hé\n"}, got); diff != "" {
		t.Errorf("echo (-want +got):\n%s", diff)
	}
	var raw json.RawMessage
	must(t, a.Call(ctx, "raw", json.RawMessage("{\"a\": [1,\n 2]}"), &raw))
	if diff := cmp.Diff(`{"a":[1,2]}`, string(raw)); diff != "" {
		t.Errorf("raw (-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		method string
		params any
		code   jsonrpc.Code
		text   string
	}{
		{"nope", nil, jsonrpc.CodeMethodNotFound, "method not found: nope (-32601)"},
		{"fail", text{"no luck"}, jsonrpc.CodeInternalError, "no luck (-32603)"},
		{"code", nil, jsonrpc.CodeInvalidParams, "invalid params (-32602)"},
		{"echo", map[string]any{"text": 7}, jsonrpc.CodeInvalidParams, "invalid params at /text: found a number, want a string (-32602)"},
		{"panic", nil, jsonrpc.CodeInternalError, "internal error: the handler panicked (-32603)"},
	} {
		err := a.Call(ctx, tc.method, tc.params, nil)
		if !errors.Is(err, tc.code) || err.Error() != tc.text {
			t.Errorf("%s: got %v, want %s", tc.method, err, tc.text)
		}
	}
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		h := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return "late", nil
		})
		o := &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel}
		a, b := connect(t, nil, h, o, o)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := a.Call(ctx, "x", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("call: got %v", err)
		}
		if err := <-causes; !errors.Is(err, jsonrpc.ErrCancelled) {
			t.Errorf("cause: got %v", err)
		}
		synctest.Wait()
		if s := b.Stats(); s.Sent != 0 || s.Running != 0 {
			t.Errorf("a cancelled request was answered: %+v", s)
		}
		a, _ = connect(t, nil, h, nil, nil) // of a protocol without cancellation
		if err := a.Call(ctx, "x", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the end of its context: %v", err)
		}
		ctx, cancel = context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := a.Call(ctx, "x", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without cancellation: %v", err)
		}
	})
}

// must fails the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
