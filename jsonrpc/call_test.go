package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
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
	must.OK(t, a.Call(ctx, "echo", text{"hé\n"}, &got))
	must.Equal(t, "echo", text{"hé\n"}, got)
	var raw json.RawMessage
	must.OK(t, a.Call(ctx, "raw", json.RawMessage("{\"a\": [1,\n 2]}"), &raw))
	must.Equal(t, "raw", `{"a":[1,2]}`, string(raw))
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

// TestNoCancellation gives up calls of a protocol without cancellation.
func TestNoCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connect(t, nil, echoMux(), nil, nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		wantErr(t, a.Call(ctx, "hang", nil, nil), context.DeadlineExceeded, "without cancellation")
		wantErr(t, a.Call(ctx, "hang", nil, nil), context.DeadlineExceeded, "after the end of its context")
	})
}

func TestStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel}
		r := running(t, nil, o)
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
		wantErr(t, b.Result(nil), context.Canceled, "cancelled call")
		r.send(`{"jsonrpc":"2.0","id":1,"result":{}}`) // late, dropped

		ctx, abandon := context.WithCancelCause(bg)
		c := r.p.Start(ctx, "c", nil)
		r.want(`{"jsonrpc":"2.0","id":2,"method":"c"}`)
		abandon(errors.New("enough"))
		r.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"enough"}}`)
		wantErr(t, c.Result(nil), context.Canceled, "cancelled call")
		refused := r.p.Start(ctx, "d", nil)
		if wantErr(t, refused.Result(nil), context.Canceled, "call with an ended context"); !refused.ID().IsZero() {
			t.Errorf("a refused call has the id %v", refused.ID())
		}

		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		d := r.p.Start(ctx, "initialize", nil)
		r.want(`{"jsonrpc":"2.0","id":3,"method":"initialize"}`)
		wantErr(t, d.Result(nil), context.DeadlineExceeded, "initialize")
		ctx, cancel = context.WithCancel(bg)
		defer cancel()
		e := r.p.Start(ctx, "e", nil)
		r.want(`{"jsonrpc":"2.0","id":4,"method":"e"}`) // and no cancel note before it
		r.send(`{"jsonrpc":"2.0","id":4,"error":{"code":5,"message":"five","data":{"a":1}}}`)
		var err *jsonrpc.Error
		if !errors.As(e.Result(nil), &err) {
			t.Fatal("no error answer")
		}
		must.Equal(t, "the result", &jsonrpc.Error{Code: 5, Message: "five", Data: json.RawMessage(`{"a":1}`)}, err)
		r.send(`{"jsonrpc":"2.0","id":5,"error":{"message":"no code"}}`)

		f := r.p.Start(bg, "f", nil)
		r.want(`{"jsonrpc":"2.0","id":5,"method":"f"}`)
		f.Cancel()
		r.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"context canceled"}}`)
		wantErr(t, f.Result(nil), context.Canceled, "cancelled call")
		for _, ended := range []*jsonrpc.Call{a, e, f, refused} {
			ended.Cancel() // does nothing
		}
		if err := a.Result(nil); err != nil {
			t.Errorf("an answered call that was cancelled later: %v", err)
		}
		g := r.p.Start(bg, "g", nil)
		r.want(`{"jsonrpc":"2.0","id":6,"method":"g"}`) // and no cancel note before it
		r.send(`{"jsonrpc":"2.0","id":6,"result":{}}`)
		if err := g.Result(nil); err != nil {
			t.Error(err)
		}
		if s := r.p.Stats(); s.Pending != 0 {
			t.Errorf("%d calls pending", s.Pending)
		}
	})
}

func TestBadAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := running(t, nil, nil)
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
		must.OK(t, a.Call(ctx, "nilraw", nil, nil))
	}
	if err := a.Notify(ctx, "x", 7); err == nil {
		t.Error("a number was sent as params")
	}
	must.OK(t, a.Notify(ctx, "x", nil), a.Flush(ctx), b.Flush(ctx))
}

func TestErrors(t *testing.T) {
	e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "bad %s", "luck")
	for _, tc := range []struct {
		target error
		want   bool
	}{
		{jsonrpc.CodeInvalidParams, true}, {jsonrpc.CodeInternalError, false},
		{jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "bad luck"), true}, {jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "other"), false},
		{jsonrpc.Errorf(jsonrpc.CodeInternalError, "bad luck"), false}, {(*jsonrpc.Error)(nil), false}, {errors.New("x"), false},
	} {
		must.Equal(t, fmt.Sprintf("Is(%v)", tc.target), tc.want, errors.Is(e, tc.target))
	}
}

// duringEncoding are params that run a function while they are encoded.
type duringEncoding func()

func (f duringEncoding) MarshalJSON() ([]byte, error) { f(); return []byte("{}"), nil }

// TestCallAfterInputEnd checks that a call fails at once when the other side has ended its input,
// also while the params of the call are encoded. A handler that runs keeps the connection open.
func TestCallAfterInputEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		release := make(chan struct{})
		h := jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) (any, error) { <-release; return nil, nil })
		r := newRaw(t, h, &jsonrpc.Options{
			DrainTimeout: -1, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		ended := r.run(context.Background())
		r.send(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
		end := duringEncoding(func() { _ = r.in.Close(); synctest.Wait() })
		wantErr(t, r.p.Call(context.Background(), "during", end, nil), jsonrpc.ErrClosed, "during the call")
		if !strings.Contains(log.String(), "method=during") {
			t.Errorf("the end of the call is not in the log: %s", log.String())
		}
		wantErr(t, r.p.Call(context.Background(), "after", nil, nil), jsonrpc.ErrClosed, "before the call")
		close(release)
		r.want(`{"jsonrpc":"2.0","id":1,"result":null}`) // and no call before it
		must.OK(t, <-ended)
	})
}

// TestAnswerBeforeItsCall has another side that answers a call before it was sent, by guessing
// its id. The next call gets its own answer.
func TestAnswerBeforeItsCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := running(t, nil, nil)
		must.OK(t, r.p.Notify(context.Background(), "fill", text{strings.Repeat("x", 50)}))
		results := make(chan error)
		var early, own text
		go func() {
			results <- r.p.Call(context.Background(), "a", nil, &early)
			results <- r.p.Call(context.Background(), "b", nil, &own)
		}()
		synctest.Wait() // the call is queued behind what the other side does not read
		r.send(`{"jsonrpc":"2.0","id":0,"result":{"text":"early"}}`)
		if err := <-results; err != nil || early.Text != "early" {
			t.Errorf("the call that was not sent: %q, %v", early.Text, err)
		}
		r.want(`{"jsonrpc":"2.0","method":"fill","params":{"text":"`+strings.Repeat("x", 50)+`"}}`,
			`{"jsonrpc":"2.0","id":0,"method":"a"}`, `{"jsonrpc":"2.0","id":1,"method":"b"}`)
		r.send(`{"jsonrpc":"2.0","id":1,"result":{"text":"own"}}`)
		if err := <-results; err != nil || own.Text != "own" {
			t.Errorf("the next call: %q, %v", own.Text, err)
		}
	})
}

// TestCallsWithoutReader checks that calls return when their contexts end, or when the queue is full, although the other
// side reads nothing, and that it learns of each cancellation when it reads again.
func TestCallsWithoutReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		bg := context.Background()
		r := newRaw(t, nil, &jsonrpc.Options{
			Cancellation: jsonrpc.MCPCancel,
			MaxUnsent:    200,
			Logger:       slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		r.run(bg)
		first := r.p.Start(bg, "a", nil)
		r.want(`{"jsonrpc":"2.0","id":0,"method":"a"}`)
		synctest.Wait()

		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		wantErr(t, r.p.Call(ctx, "b", nil, nil), context.DeadlineExceeded, "a call that nobody reads")
		cancelled := func(id, why string) string {
			return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"` + why + `"}}`
		}
		r.want(`{"jsonrpc":"2.0","id":1,"method":"b"}`, cancelled("1", "context deadline exceeded"))

		for _, c := range []struct {
			id   string
			fill bool // the queue is full when the context ends
		}{{"2", false}, {"3", true}} {
			ctx, cancel := context.WithCancel(bg)
			result := make(chan error)
			go func() { result <- r.p.Call(ctx, "c", nil, nil) }()
			r.want(`{"jsonrpc":"2.0","id":` + c.id + `,"method":"c"}`)
			synctest.Wait()
			notes := 0
			for c.fill && r.p.Notify(bg, "n", nil) == nil {
				notes++
			}
			if c.fill {
				wantErr(t, r.p.Call(bg, "full", nil, nil), jsonrpc.ErrFull, "a call without room")
			}
			cancel()
			wantErr(t, <-result, context.Canceled, "a call whose cancellation nobody reads")
			for range notes {
				r.want(`{"jsonrpc":"2.0","method":"n"}`)
			}
			r.want(cancelled(c.id, "context canceled"))
		}
		r.send(`{"jsonrpc":"2.0","id":0,"result":{}}`)
		must.OK(t, first.Result(nil))
		if !strings.Contains(log.String(), "method=full") {
			t.Errorf("the refused call is not in the log: %s", log.String())
		}
	})
}

// TestInboundCancellation gives up a call under a profile of which only the other side may make use.
func TestInboundCancellation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := running(t, nil, &jsonrpc.Options{Cancellation: &jsonrpc.CancelProfile{Method: "gone", IDMember: "id", Inbound: true}})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		result := make(chan error)
		go func() { result <- r.p.Call(ctx, "a", nil, nil) }()
		r.want(`{"jsonrpc":"2.0","id":0,"method":"a"}`)
		if err := <-result; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		go func() { result <- r.p.Notify(context.Background(), "b", nil) }()
		r.want(`{"jsonrpc":"2.0","method":"b"}`) // and no cancellation before it
		must.OK(t, <-result)
	})
}

// watchedContext is a context that counts who watches it.
type watchedContext struct {
	context.Context
	watchers atomic.Int32
	began    func() // called when one begins
}

// Value hides the context that is embedded: the context package would watch that one.
func (*watchedContext) Value(any) any { return nil }

// AfterFunc is what the context package calls to watch a context that has it.
func (c *watchedContext) AfterFunc(f func()) func() bool {
	c.watchers.Add(1)
	stop := context.AfterFunc(c.Context, f)
	c.began()
	return func() bool {
		c.watchers.Add(-1)
		return stop()
	}
}

// TestStartLeavesItsContext checks that a call does not watch its context after its end. A
// context that lives long would otherwise keep every call.
func TestStartLeavesItsContext(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":0,"result":{"text":"x"}}`
	for name, tt := range map[string]struct {
		began, then func(r *raw)
		err         error
	}{
		"answered":              {then: func(r *raw) { r.send(answer) }},
		"answered during Start": {began: func(r *raw) { r.send(answer) }},
		"closed":                {then: func(r *raw) { _ = r.p.Close() }, err: jsonrpc.ErrClosed},
		"closed during Start":   {began: func(r *raw) { _ = r.p.Close() }, err: jsonrpc.ErrClosed},
	} {
		bubbles(t, name, func(t *testing.T) {
			r := running(t, nil, nil)
			inner, cancel := context.WithCancel(context.Background())
			defer cancel()
			ctx := &watchedContext{Context: inner, began: func() {}}
			if tt.began != nil {
				ctx.began = func() { synctest.Wait(); tt.began(r) }
			}
			c := r.p.Start(ctx, "x", nil)
			if tt.then != nil {
				if n := ctx.watchers.Load(); n != 1 {
					t.Errorf("%d watch a context with one call", n)
				}
				tt.then(r)
			}
			if err := c.Result(nil); !errors.Is(err, tt.err) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
			if n := ctx.watchers.Load(); n != 0 {
				t.Errorf("%d still watch the context", n)
			}
		})
	}
}

// TestNotificationThatCalls checks that the handler of a notification gets the answer to its call, and
// that what came behind the notification waits for it.
func TestNotificationThatCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var order []string
		r := newRaw(t, jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			if r.Method == "note" {
				if err := jsonrpc.RequestFrom(ctx).Peer().Call(ctx, "back", nil, nil); err != nil {
					t.Error(err)
				}
			}
			order = append(order, r.Method)
			return nil, nil
		}), nil)
		r.run(context.Background())
		r.send(`{"jsonrpc":"2.0","method":"note"}`, `{"jsonrpc":"2.0","method":"next"}`, `{"jsonrpc":"2.0","id":2,"method":"behind"}`)
		r.want(`{"jsonrpc":"2.0","id":0,"method":"back"}`)
		synctest.Wait()
		if len(order) > 0 {
			t.Errorf("handled already: %q", order)
		}
		r.send(`{"jsonrpc":"2.0","id":0,"result":{}}`)
		r.want(`{"jsonrpc":"2.0","id":2,"result":null}`)
		must.Equal(t, "the result", []string{"note", "next", "behind"}, order)
	})
}

type wrongParams struct{ error }

func (wrongParams) InvalidParams() (path, why string) { return "/a/0", "want a string" }

// TestHandleRawReportsInvalidParams checks that an error with InvalidParams, as package mcptypes returns it, is sent with
// the path of the fault. Other errors of a decoder count as errors of the handler.
func TestHandleRawReportsInvalidParams(t *testing.T) {
	mux := &jsonrpc.Mux{}
	mux.HandleRaw("wrong", func(context.Context, json.RawMessage) (any, error) {
		return nil, fmt.Errorf("read: %w", wrongParams{errors.New("bad")})
	})
	mux.HandleRaw("other", func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("bad") })
	for method, want := range map[string]*jsonrpc.Error{
		"wrong": {Code: jsonrpc.CodeInvalidParams, Message: "invalid params at /a/0: want a string", Data: json.RawMessage(`{"path":"/a/0"}`)},
		"other": nil,
	} {
		_, err := mux.ServeRPC(t.Context(), &jsonrpc.Request{Method: method})
		var got *jsonrpc.Error
		if errors.As(err, &got) != (want != nil) {
			t.Errorf("%s: %v", method, err)
		}
		must.Equal(t, method, want, got)
	}
	jsonrpc.HandleNotify(mux, "note", func(context.Context, struct{ A int }) error { return nil })
	if _, err := mux.ServeRPC(t.Context(), &jsonrpc.Request{Method: "note", Params: []byte(`{"A":"x"}`)}); err == nil {
		t.Error("wrong params of a notification are no error")
	}
	raw := ""
	jsonrpc.HandleNotify(mux, "raw", func(_ context.Context, params json.RawMessage) error {
		raw = string(params)
		return errors.New("refused")
	})
	if _, err := mux.ServeRPC(t.Context(), &jsonrpc.Request{Method: "raw", Params: []byte(`[1]`)}); err == nil || raw != "[1]" {
		t.Errorf("raw params are %q, %v", raw, err)
	}
}

// wantErr fails the test unless err is target, which may be nil.
func wantErr(t *testing.T, err, target error, name ...any) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: %v, want %v", said(name), err, target)
	}
}

// said returns the words of a format and its arguments, if there are any.
func said(name []any) string {
	if len(name) == 0 {
		return "it"
	}
	return fmt.Sprintf(fmt.Sprint(name[0]), name[1:]...)
}
