package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestCancelledAnswers checks how a cancelled request is answered where the protocol wants an
// answer, and that a Reply to one that gets none is no fault.
func TestCancelledAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		profile      jsonrpc.Cancellation
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
			bubbles(t, name, func(t *testing.T) {
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
				r := running(t, h, &jsonrpc.Options{Cancellation: tt.profile})
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
			bubbles(t, method, func(t *testing.T) {
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
			r := running(t, h, &jsonrpc.Options{MaxUnsent: 120, Hooks: &jsonrpc.Hooks{}, Batches: func() bool { return true }})
			fill := text{strings.Repeat("x", 60)}
			if tt.full {
				must.OK(t, r.p.Notify(context.Background(), "fill", fill))
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
		r := running(t, h, &jsonrpc.Options{MaxUnsent: 120})
		must.OK(t, r.p.Notify(context.Background(), "fill", text{long}))
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
		must.Equal(t, "the result", want, got)
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
		r := running(t, h, &jsonrpc.Options{MaxConcurrent: 1, MaxMessage: 700})
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
			bubbles(t, name+"/"+how, func(t *testing.T) {
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
					must.OK(t, json.Unmarshal(log.Bytes(), &record))
				}
				if record.Panic != tc.logged || tc.logged != "" && record.Method != how {
					t.Errorf("logged %+v, want the panic %q of %s", record, tc.logged, how)
				}
			})
		}
	}
}

// TestPanicInCause has a cause that panics. The cause belongs to the caller, and a goroutine
// of the context package sends its text to the other side.
func TestPanicInCause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := running(t, nil, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
		ctx, cancel := context.WithCancelCause(context.Background())
		c := r.p.Start(ctx, "x", nil)
		r.want(`{"jsonrpc":"2.0","id":0,"method":"x"}`)
		cancel(panicError{})
		synctest.Wait()
		r.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
		wantErr(t, c.Result(nil), context.Canceled)
	})
}

// script is a transport that a test fills. It records the messages that are written.
type script struct {
	lines chan []byte

	mu    sync.Mutex
	wrote []string
}

func (w *script) Read(ctx context.Context) ([]byte, error) {
	select {
	case line := <-w.lines:
		return line, nil
	case <-ctx.Done():
		return nil, io.EOF
	}
}

func (w *script) Write(_ context.Context, messages [][]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range messages {
		w.wrote = append(w.wrote, string(m))
	}
	return nil
}

func (w *script) Close() error { return nil }

func (w *script) written() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Join(w.wrote, "\n")
	w.wrote = nil
	return all
}

// batched is a peer that accepts batches. Requests wait for go of their method.
type batched struct {
	*jsonrpc.Peer
	*script
	accepts atomic.Bool // as it is asked
	gates   map[string]chan struct{}
}

func newBatched(t *testing.T, o *jsonrpc.Options) *batched {
	b := &batched{script: &script{lines: make(chan []byte)}, gates: map[string]chan struct{}{"a": make(chan struct{}, 9), "b": make(chan struct{}, 9)}}
	h := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if gate := b.gates[r.Method]; gate != nil {
			select {
			case <-gate:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if r.Method == "ask" {
			var answer json.RawMessage
			err := r.Peer().Call(ctx, "question", nil, &answer)
			return answer, err
		}
		return r.Method, nil
	})
	b.accepts.Store(true)
	o.Cancellation, o.Batches = jsonrpc.MCPCancel, b.accepts.Load
	b.Peer = jsonrpc.NewPeer(b.script, h, o)
	ended := make(chan error, 1)
	go func() { ended <- b.Peer.Run(context.Background()) }()
	t.Cleanup(func() {
		b.Peer.Close()
		<-ended
	})
	return b
}

// Close is the transport's.
func (b *batched) Close() error { return nil }

// put sends a line, and checks what the peer writes.
func (b *batched) put(t *testing.T, line, want string) {
	t.Helper()
	b.lines <- []byte(line)
	must.Equal(t, fmt.Sprintf("%.200s", line), want, b.written())
}

func call(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`
}

func TestBatches(t *testing.T) {
	const (
		note     = `{"jsonrpc":"2.0","method":"n"}`
		refused  = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not accepted"}}`
		noObject = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message is an object"}}`
	)
	result := func(id, of string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":"` + of + `"}` }
	invalid := func(id, why string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":"` + why + `"}}`
	}
	bubble(t, func(t *testing.T) {
		b := newBatched(t, &jsonrpc.Options{Inline: jsonrpc.Methods("now")})
		b.accepts.Store(false)
		b.put(t, "["+call("1", "x")+"]", refused)
		b.accepts.Store(true)
		for _, tt := range []struct{ line, want string }{
			{"[" + call("1", "now") + "]", "[" + result("1", "now") + "]"}, {"[" + call("1", "],[") + "]", "[" + result("1", "],[") + "]"},
			{"[]", invalid("null", "the batch is empty")}, {" [ \t] ", invalid("null", "the batch is empty")},
			{"[1,2]", "[" + noObject + "," + noObject + "]"}, {"[" + note + "," + note + "]", ""},
			{`[{"jsonrpc":"2.0","id":9,"result":1}]`, ""}, // of no call
			{" [ " + call("1", "now") + " , " + note + " , " + call(`"1"`, "now") + "\t]\r", "[" + result("1", "now") + "," + result(`"1"`, "now") + "]"},
			{"[" + call("1", "now") + "," + call("1", "now") + "]", "[" + result("1", "now") + "," + invalid("1", "id 1 occurs twice in the batch") + "]"},
			{"[[" + call("1", "now") + "]]", "[" + refused + "]"},
			{"[" + call("1", "now") + `,{"id":2,"id":2},{"jsonrpc":"2.0","id":3,"method":3}]`,
				"[" + result("1", "now") + "," + invalid("null", `member \"id\" occurs twice`) + "," + invalid("3", "method is not a string") + "]"},
			{"[" + call("1", "now") + ",", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not valid JSON at byte 41"}}`},
			{"[" + strings.Repeat("1,", 256) + "1]", invalid("null", "the batch has more than 256 messages")},
			{call("1", "now"), result("1", "now")},
		} {
			b.put(t, tt.line, tt.want)
		}
		if got := b.Stats(); got.Running != 0 || got.Waiting != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// TestBatchWaits sends the answers of a batch when the last is there. Another message does not wait for that.
func TestBatchWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBatched(t, &jsonrpc.Options{})
		b.put(t, "["+call("1", "a")+","+call("2", "b")+","+call("3", "c")+"]", "")
		b.put(t, call("4", "d"), `{"jsonrpc":"2.0","id":4,"result":"d"}`)
		b.put(t, call("1", "d"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"id 1 is already in use"}}`)
		b.put(t, "["+call("1", "d")+"]", `[{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"id 1 is already in use"}}]`)
		b.gates["b"] <- struct{}{}
		b.put(t, call("5", "d"), `{"jsonrpc":"2.0","id":5,"result":"d"}`)
		b.gates["a"] <- struct{}{}
		must.Equal(t, "the result", `[{"jsonrpc":"2.0","id":3,"result":"c"},{"jsonrpc":"2.0","id":2,"result":"b"},{"jsonrpc":"2.0","id":1,"result":"a"}]`, b.written())
		// A cancelled request has no answer, and nothing waits for it.
		b.put(t, "["+call("1", "a")+","+call("2", "b")+"]", "")
		b.gates["b"] <- struct{}{}
		b.put(t, `[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]`, `[{"jsonrpc":"2.0","id":2,"result":"b"}]`)
		b.put(t, "["+call("1", "a")+"]", "")
		b.put(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, "")
		b.put(t, call("1", "d"), `{"jsonrpc":"2.0","id":1,"result":"d"}`)
	})
}

// TestBatchAnswers takes the answer to a question from a batch, once. The request that asks may be in a batch itself.
func TestBatchAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBatched(t, &jsonrpc.Options{})
		for i := range 2 {
			b.put(t, "["+call("1", "ask")+"]", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"question"}`, i))
			b.put(t, fmt.Sprintf(`[{"jsonrpc":"2.0","id":%d,"result":{"action":"decline"}},{"jsonrpc":"2.0","id":%d,"result":{"action":"accept"}}]`, i, i),
				`[{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}]`)
		}
	})
}

// TestBatchEnd answers a batch whose requests are handled when the input ends.
func TestBatchEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := running(t, echoMux(), &jsonrpc.Options{Batches: func() bool { return true }})
		r.send(`[{"jsonrpc":"2.0","id":1,"method":"raw","params":[1]}]`)
		_ = r.in.Close()
		r.want(`[{"jsonrpc":"2.0","id":1,"result":[1]}]`)
	})
}

// TestBatchLimit closes the connection of a client whose answers wait for others without end.
func TestBatchLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBatched(t, &jsonrpc.Options{MaxUnsent: 1000})
		for range 150 { // what is sent does not count any more
			b.lines <- fmt.Appendf(nil, "[%s,%s]", call("1", "x"), call("2", "y"))
			if got := b.written(); got == "" {
				t.Fatal("no answer")
			}
		}
		for i := 0; b.Err() == nil; i++ {
			if i > 30 {
				t.Fatal("it holds answers without end")
			}
			b.lines <- fmt.Appendf(nil, "[%s,%s]", call(fmt.Sprint(2*i), "a"), call(fmt.Sprint(2*i+1), strings.Repeat("x", 100)))
			must.Equal(t, "the result", "", b.written())
		}
	})
}
