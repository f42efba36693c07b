package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
)

func TestStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel}
		r := newRaw(t, nil, o)
		r.run(context.Background())
		bg := context.Background()

		a := r.p.Start(bg, "a", nil)
		r.want(`{"jsonrpc":"2.0","id":0,"method":"a"}`)
		if a.ID() != mcptypes.IntID(0) {
			t.Errorf("id %v", a.ID())
		}
		r.send(`{"jsonrpc":"2.0","id":0,"result":{"text":"x"}}`)
		<-a.Done()
		var got text
		if err := errors.Join(a.Result(&got), a.Result(nil)); err != nil || got.Text != "x" {
			t.Errorf("got %+v, %v", got, err)
		}
		if err := a.Result(new(int)); err == nil {
			t.Error("an object was read as an integer")
		}

		bctx, giveUp := context.WithCancelCause(bg)
		b := r.p.Start(bctx, "b", []int{1})
		r.want(`{"jsonrpc":"2.0","id":1,"method":"b","params":[1]}`)
		giveUp(errors.New(`a "reason"`))
		r.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"a \"reason\""}}`)
		if err := b.Result(nil); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled call: %v", err)
		}
		r.send(`{"jsonrpc":"2.0","id":1,"result":{}}`) // late, dropped

		ctx, abandon := context.WithCancelCause(bg)
		c := r.p.Start(ctx, "c", nil)
		r.want(`{"jsonrpc":"2.0","id":2,"method":"c"}`)
		abandon(errors.New("enough"))
		r.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"enough"}}`)
		if err := c.Result(nil); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled call: %v", err)
		}
		if err := r.p.Start(ctx, "d", nil).Result(nil); !errors.Is(err, context.Canceled) {
			t.Errorf("call with an ended context: %v", err)
		}

		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		d := r.p.Start(ctx, "initialize", nil)
		r.want(`{"jsonrpc":"2.0","id":3,"method":"initialize"}`)
		if err := d.Result(nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("initialize: %v", err)
		}
		ctx, cancel = context.WithCancel(bg)
		defer cancel()
		e := r.p.Start(ctx, "e", nil)
		r.want(`{"jsonrpc":"2.0","id":4,"method":"e"}`) // and no cancel note before it
		r.send(`{"jsonrpc":"2.0","id":4,"error":{"code":5,"message":"five","data":{"a":1}}}`)
		var err *jsonrpc.Error
		if !errors.As(e.Result(nil), &err) {
			t.Fatal("no error answer")
		}
		if diff := cmp.Diff(&jsonrpc.Error{Code: 5, Message: "five", Data: json.RawMessage(`{"a":1}`)}, err); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		r.send(`{"jsonrpc":"2.0","id":5,"error":{"message":"no code"}}`)
		if s := r.p.Stats(); s.Pending != 0 {
			t.Errorf("%d calls pending", s.Pending)
		}
	})
}

func TestBadAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRaw(t, nil, nil)
		r.run(context.Background())
		for _, tc := range []struct{ answer, want string }{
			{`{"jsonrpc":"2.0","id":0,"error":{"message":"x"}}`, "jsonrpc: error answer to m cannot be read: error member has no code"},
			{`{"id":1,"result":{}}`, `jsonrpc: answer to m: jsonrpc is not "2.0" (-32600)`},
			{`{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":""}}`, "method not found"},
			{`{"jsonrpc":"2.0","id":3,"error":{"code":77,"message":""}}`, "code 77"},
		} {
			c := r.p.Start(context.Background(), "m", nil)
			_, _ = r.out.ReadString('\n')
			r.send(tc.answer)
			if err := c.Result(nil); err == nil || err.Error() != tc.want {
				t.Errorf("%s: got %v, want %s", tc.answer, err, tc.want)
			}
		}
	})
}

func TestEncodingFaults(t *testing.T) {
	a, b := connect(t, nil, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
		switch r.Method {
		case "func":
			return func() {}, nil
		case "raw":
			return json.RawMessage("{"), nil
		case "data":
			return nil, &jsonrpc.Error{Code: 1, Data: json.RawMessage("nonsense")}
		case "moredata":
			return nil, &jsonrpc.Error{Code: 2, Message: "m", Data: json.RawMessage("[1]")}
		case "nilraw":
			return (*json.RawMessage)(nil), nil
		}
		return &r.Params, nil
	}), nil, nil)
	ctx := context.Background()
	for _, tc := range []struct {
		method string
		params any
		want   string
	}{
		{"x", func() {}, "jsonrpc: params of x: json: "},
		{"x", 7, "jsonrpc: params of x: must be an object or an array"},
		{"x", json.RawMessage(`{"a"}`), "jsonrpc: params of x: raw message is not valid JSON"},
		{"func", nil, "the result of func cannot be encoded (-32603)"},
		{"raw", nil, "the result of raw cannot be encoded (-32603)"},
		{"data", nil, "code 1 (1)"}, {"moredata", nil, "m (2)"}, {"nilraw", nil, ""}, {"x", json.RawMessage(nil), ""},
		{"x", (*text)(nil), ""}, {"x\n\"é\x7f", json.RawMessage(" [1]"), ""},
	} {
		var out json.RawMessage
		err := a.Call(ctx, tc.method, tc.params, &out)
		if tc.want == "" && err == nil {
			continue
		}
		// The JSON package varies its wording on purpose.
		if err == nil || tc.want == "" || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s(%v): got %v, want %s", tc.method, tc.params, err, tc.want)
		}
	}
	for range 2 * 16 { // a reader over descriptors would handle a method that is so often quick by itself
		must(t, a.Call(ctx, "nilraw", nil, nil))
	}
	if err := a.Notify(ctx, "x", 7); err == nil {
		t.Error("a number was sent as params")
	}
	must(t, a.Notify(ctx, "x", nil), a.Flush(ctx), b.Flush(ctx))
}

func TestErrors(t *testing.T) {
	e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "bad %s", "luck")
	for _, tc := range []struct {
		target error
		want   bool
	}{
		{jsonrpc.CodeInvalidParams, true},
		{jsonrpc.CodeInternalError, false},
		{jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "bad luck"), true},
		{jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "other"), false},
		{jsonrpc.Errorf(jsonrpc.CodeInternalError, "bad luck"), false},
		{(*jsonrpc.Error)(nil), false},
		{errors.New("x"), false},
	} {
		if got := errors.Is(e, tc.target); got != tc.want {
			t.Errorf("Is(%v): got %v", tc.target, got)
		}
	}
}
