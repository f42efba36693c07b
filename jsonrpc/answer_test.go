package jsonrpc_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// TestCancelledAnswers checks how a cancelled request is answered where the protocol wants an
// answer, and that a Reply to one that gets none is no fault.
func TestCancelledAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		profile      *jsonrpc.CancelProfile
		method, note string
		result       any
		err          error
		want         string
		cause        error
	}{
		"a result":   {jsonrpc.LSPCancel, "x", `"$/cancelRequest","params":{"id":1}`, "done", nil, `"result":"done"`, jsonrpc.ErrCancelled},
		"an error":   {jsonrpc.LSPCancel, "x", `"$/cancelRequest","params":{"id":1}`, nil, errors.New("x"), `"error":{"code":-32800,"message":"request cancelled"}`, jsonrpc.ErrCancelled},
		"no answer":  {jsonrpc.MCPCancel, "x", `"notifications/cancelled","params":{"requestId":1}`, "done", nil, "", jsonrpc.ErrCancelled},
		"initialize": {jsonrpc.MCPCancel, "initialize", `"notifications/cancelled","params":{"requestId":1}`, "done", nil, `"result":"done"`, context.Canceled},
	} {
		for _, detached := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					release := make(chan struct{})
					wait := func(ctx context.Context) {
						select {
						case <-ctx.Done():
						case <-release:
						}
					}
					contexts := make(chan context.Context, 2) // of the handlers
					h := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
						contexts <- ctx
						if r.Method == "next" {
							return "next", nil
						}
						if detached {
							w := r.Responder()
							go func() {
								wait(ctx)
								if err := w.Reply(tt.result, tt.err); err != nil {
									t.Error(err)
								}
								if w.Reply(nil, nil) == nil {
									t.Error("answered twice")
								}
							}()
							return nil, nil
						}
						wait(ctx)
						return tt.result, tt.err
					})
					r := newRaw(t, h, &jsonrpc.Options{Cancellation: tt.profile})
					r.run(context.Background())
					r.send(`{"jsonrpc":"2.0","id":1,"method":"` + tt.method + `"}`)
					r.send(`{"jsonrpc":"2.0","method":` + tt.note + `}`)
					close(release)
					if tt.want != "" {
						r.want(`{"jsonrpc":"2.0","id":1,` + tt.want + `}`)
					}
					r.send(`{"jsonrpc":"2.0","id":2,"method":"next"}`)
					r.want(`{"jsonrpc":"2.0","id":2,"result":"next"}`)
					synctest.Wait()
					for _, cause := range []error{tt.cause, context.Canceled} {
						if ctx := <-contexts; ctx.Err() == nil || context.Cause(ctx) != cause {
							t.Errorf("the context of an answered request: %v", context.Cause(ctx))
						}
					}
				})
			})
		}
	}
}

// TestNotificationsEnd checks that a notification gets no answer and is over, however its
// handler ends: the end of the connection would wait for it. Its faults are reported.
func TestNotificationsEnd(t *testing.T) {
	type key struct{}
	for method, problem := range map[string]string{
		"well": "", "reply": "", "panic": "notification panic: internal error: the handler panicked (-32603)",
		"exit": "notification exit: handler ended its goroutine", "fail": "notification fail: x", "unknown": "",
		"nil *Error": "", "Error panics": "notification Error panics: %!v(PANIC=Error method: in Error)", "Is panics": "",
	} {
		for _, inline := range []bool{false, true} {
			t.Run(method, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					h := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
						if ctx.Value(key{}) != "value" {
							t.Error("the context lacks the value of Run's")
						}
						switch r.Method {
						case "unknown":
							return nil, jsonrpc.CodeMethodNotFound
						case "reply":
							return nil, r.Responder().Reply("x", nil)
						case "exit":
							runtime.Goexit()
						case "panic":
							panic("x")
						case "nil *Error":
							return nil, (*jsonrpc.Error)(nil)
						case "Error panics":
							return nil, panicError{}
						case "Is panics":
							return nil, panicIs{errors.New("x")}
						case "fail":
							return nil, errors.New("x")
						}
						return nil, nil
					})
					var problems string
					r := newRaw(t, h, &jsonrpc.Options{
						DrainTimeout: -1, Inline: func(*jsonrpc.Request) bool { return inline },
						Hooks: &jsonrpc.Hooks{Problem: func(err error, _ []byte) { problems += err.Error() }},
					})
					ended := r.run(context.WithValue(context.Background(), key{}, "value"))
					r.send(`{"jsonrpc":"2.0","method":"`+method+`"}`, `{"jsonrpc":"2.0","id":1,"method":"well"}`)
					r.want(`{"jsonrpc":"2.0","id":1,"result":null}`)
					_ = r.in.Close()
					if err := <-ended; err != nil || problems != problem {
						t.Errorf("%v; reported %q, want %q", err, problems, problem)
					}
				})
			})
		}
	}
}

// TestRefusedWithoutRoom checks that a refusal is sent although the queue is full, and that the
// reading waits neither for room nor for the other side to read.
func TestRefusedWithoutRoom(t *testing.T) {
	const wrong = `"error":{"code":-32600,"message":"no method, result or error"}}`
	for _, tt := range []struct {
		full            bool
		refused, answer string
	}{
		{true, `{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":1,` + wrong},
		{false, `{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":1,` + wrong},
		{true, `[{"jsonrpc":"2.0","id":1}]`, `[{"jsonrpc":"2.0","id":1,` + wrong + `]`},
		{false, `[{"jsonrpc":"2.0","id":1}]`, `[{"jsonrpc":"2.0","id":1,` + wrong + `]`},
	} {
		bubble(t, func(t *testing.T) {
			handled := make(chan struct{}, 1)
			h := jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) (any, error) {
				handled <- struct{}{}
				return nil, nil
			})
			r := newRaw(t, h, &jsonrpc.Options{MaxUnsent: 120, Hooks: &jsonrpc.Hooks{}, Batches: func() bool { return true }})
			r.run(context.Background())
			fill := text{strings.Repeat("x", 60)}
			if tt.full {
				must(t, r.p.Notify(context.Background(), "fill", fill))
			}
			r.send(tt.refused, `{"jsonrpc":"2.0","method":"note"}`)
			select {
			case <-handled:
			default:
				t.Error("the reading waits for room")
			}
			if tt.full {
				r.want(`{"jsonrpc":"2.0","method":"fill","params":{"text":"` + fill.Text + `"}}`)
			}
			r.want(tt.answer)
		})
	}
}

// TestAnswersWait checks that answers wait for room, however many there are.
func TestAnswersWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		long := strings.Repeat("x", 60)
		h := jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) (any, error) { return long, nil })
		r := newRaw(t, h, &jsonrpc.Options{MaxUnsent: 120})
		r.run(context.Background())
		must(t, r.p.Notify(context.Background(), "fill", text{long}))
		want := map[string]bool{`{"jsonrpc":"2.0","method":"fill","params":{"text":"` + long + "\"}}\n": true}
		for i := range 4 {
			r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, i))
			want[fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%s"}`+"\n", i, long)] = true
		}
		got := map[string]bool{}
		for range 5 {
			line, _ := r.out.ReadString('\n')
			got[line] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestPlaces fills the queue and the places again and again, behind a notification and with
// handlers that end in every way. Every request gets one answer, and room and places come back.
func TestPlaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		h := jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			if r.Method != "quick" {
				<-gate
			}
			if r.Method == "exit" {
				runtime.Goexit()
			}
			return r.Method, nil
		})
		r := newRaw(t, h, &jsonrpc.Options{MaxConcurrent: 1, MaxMessage: 700})
		r.run(context.Background())
		const overloaded = `"error":{"code":-32000,"message":"overloaded: too much is waiting to be handled"}}`
		const exited = `"error":{"code":-32603,"message":"internal error: handler ended its goroutine"}}`
		stats := func(running, waiting int) {
			t.Helper()
			synctest.Wait()
			if s := r.p.Stats(); s.Running != running || s.Waiting != waiting {
				t.Errorf("%d running and %d waiting, want %d and %d", s.Running, s.Waiting, running, waiting)
			}
		}
		for range 3 {
			r.send(`{"jsonrpc":"2.0","method":"note"}`)
			r.send(`{"jsonrpc":"2.0","id":1,"method":"exit"}`, `{"jsonrpc":"2.0","id":2,"method":"b"}`)
			stats(0, 2)
			r.send(`{"jsonrpc":"2.0","id":3,"method":"c"}`)
			r.want(`{"jsonrpc":"2.0","id":3,` + overloaded)
			gate <- struct{}{}
			stats(1, 1)
			r.send(`{"jsonrpc":"2.0","id":4,"method":"d"}`, `{"jsonrpc":"2.0","id":5,"method":"e"}`)
			r.want(`{"jsonrpc":"2.0","id":5,` + overloaded)
			gate <- struct{}{}
			r.want(`{"jsonrpc":"2.0","id":1,` + exited)
			stats(1, 1)
			for _, answer := range []string{`{"jsonrpc":"2.0","id":2,"result":"b"}`, `{"jsonrpc":"2.0","id":4,"result":"d"}`} {
				gate <- struct{}{}
				r.want(answer)
			}
			stats(0, 0)
		}
		for range 20 {
			r.send(`{"jsonrpc":"2.0","id":6,"method":"quick"}`)
			r.want(`{"jsonrpc":"2.0","id":6,"result":"quick"}`)
		}
		stats(0, 0)
	})
}
