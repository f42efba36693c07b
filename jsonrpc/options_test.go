package jsonrpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
)

func TestDialects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := running(t, echoMux(), &jsonrpc.Options{LenientVersion: true})
		r.send(`{"id":1,"method":"raw","params":[1]}`, `{"jsonrpc":"1.0","id":2,"method":"raw","params":[2]}`, `{"jsonrpc":2,"id":3,"method":"raw"}`)
		_ = r.in.Close()
		got := map[string]bool{}
		for range 3 {
			line, _ := r.out.ReadString('\n')
			got[line] = true
		}
		want := map[string]bool{
			`{"jsonrpc":"2.0","id":1,"result":[1]}` + "\n":                                               true,
			`{"jsonrpc":"2.0","id":2,"result":[2]}` + "\n":                                               true,
			`{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"jsonrpc is not \"2.0\""}}` + "\n": true,
		}
		must.Equal(t, "lenient", want, got)
	})
	bubble(t, func(t *testing.T) {
		r := running(t, echoMux(), &jsonrpc.Options{OmitVersion: true})
		r.send(`{"id":1,"method":"raw","params":[1]}`)
		r.want(`{"id":1,"result":[1]}`)
		r.send(`{"id":"\u00e9\n","method":"nope"}`)
		r.want(`{"id":"é\n","error":{"code":-32601,"message":"method not found: nope"}}`)
		c := r.p.Start(context.Background(), "x", nil)
		r.want(`{"id":0,"method":"x"}`)
		r.send(`{"id":0,"result":{}}`)
		must.OK(t, c.Result(nil))
	})
}

// TestLenientAnswers reads answers as clients of MCP do, and requests as ever.
func TestLenientAnswers(t *testing.T) {
	const waits, both = "waits", "a response has an id and either a result or an error"
	for _, tt := range []struct{ answer, strict, lenient string }{
		{`{"jsonrpc":"2.0","id":0,"result":[7],"error":null}`, waits, "[7]"},
		{`{"jsonrpc":"2.0","error":null,"result":[7],"id":0}`, waits, "[7]"},
		{`{"jsonrpc":"2.0","id":0,"result":null,"error":{"code":-1,"message":"m"}}`, waits, "m (-1)"},
		{`{"jsonrpc":"2.0","id":0,"result":null,"error":null}`, waits, both},
		{`{"jsonrpc":"2.0","id":0,"result":[7],"error":{"code":-1,"message":"m"}}`, waits, both},
		{`{"jsonrpc":"2.0","id":0,"result":[7],"error":0}`, waits, both},
		{`{"jsonrpc":"2.0","id":0,"result":[7],"result":[8]}`, waits, waits},
		{`{"jsonrpc":"2.0","id":0,"result":null}`, "null", "null"},
		{`{"jsonrpc":"2.0","id":0,"error":null}`, "error member has no code", "error member has no code"},
		{`{"jsonrpc":"2.0","id":"0","result":[7]}`, waits, "[7]"},
		{`{"jsonrpc":"2.0","id":"1","result":[7]}`, waits, waits},
		{`{"jsonrpc":"2.0","id":"0x0","result":[7]}`, waits, waits},
		{`{"jsonrpc":"2.0","id":"00","result":[7]}`, waits, waits},
		{`{"jsonrpc":"2.0","id":"+0","result":[7]}`, waits, waits},
		{`{"jsonrpc":"2.0","id":"-0","result":[7]}`, waits, waits},
		{`{"jsonrpc":"2.0","id":"0.0","result":[7]}`, waits, waits},
		{`{"jsonrpc":"2.0","id":0,"error":{"code":"-32000","message":"m"}}`, "cannot be read", "m (-32000)"},
		{`{"jsonrpc":"2.0","id":0,"error":{"code":-32000.0,"message":"m"}}`, "cannot be read", "m (-32000)"},
		{`{"jsonrpc":"2.0","id":0,"error":{"code":"E_BUSY","message":"m"}}`, "cannot be read", "m (-32603)"},
		{`{"jsonrpc":"2.0","id":0,"error":{"code":"E_BUSY"}}`, "cannot be read", "E_BUSY (-32603)"},
		{`{"jsonrpc":"2.0","id":0,"error":{"code":-1,"data":"d"}}`, "code -1", "d (-1)"},
		{`{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"","data":{"message":"d"}}}`, "code -1", "d (-1)"},
		{`{"jsonrpc":"2.0","id":0,"error":"words"}`, "cannot be read", "words (-32603)"},
		{`{"jsonrpc":"2.0","id":0,"error":[1]}`, "cannot be read", "cannot be read"},
		{`{"jsonrpc":"2.0","id":0,"result":{},"error":false}`, waits, both},
		{`{"jsonrpc":"2.0","id":0,"result":{},"error":{}}`, waits, both},
		{`{"jsonrpc":"2.0","id":0,"result":{},"error":""}`, waits, both},
		{`{"jsonrpc":"2.0","id":0,"result":false,"error":null}`, waits, "false"},
		{`{"jsonrpc":"2.0","id":" 0","result":[7]}`, waits, waits},
		{`{"jsonrpc":"2.0","id":"00","result":[7]}`, waits, waits},
		{`{"jsonrpc":"2.0","id":"+0","result":[7]}`, waits, waits},
		{`{"jsonrpc":"2.0","id":"-0","result":[7]}`, waits, waits},
		{`{"jsonrpc":"2.0","id":0,"error":{"code":null,"message":null,"data":["d"]}}`, "no code", "no code"},
		{`{"jsonrpc":"2.0","id":0,"error":{"code":1e300,"message":"m"}}`, "cannot be read", "m (-32603)"},
	} {
		for lenient, want := range map[bool]string{false: tt.strict, true: tt.lenient} {
			bubble(t, func(t *testing.T) {
				r := running(t, echoMux(), &jsonrpc.Options{LenientAnswers: lenient, TextIDs: lenient})
				c := r.p.Start(context.Background(), "x", nil)
				r.want(`{"jsonrpc":"2.0","id":0,"method":"x"}`)
				r.send(tt.answer, `{"jsonrpc":"2.0","id":"0","method":"raw","params":["exact"]}`)
				r.want(`{"jsonrpc":"2.0","id":"0","result":["exact"]}`)
				synctest.Wait()
				got := waits
				select {
				case <-c.Done():
					var result json.RawMessage
					if err := c.Result(&result); err != nil {
						got = err.Error()
					} else {
						got = string(result)
					}
				default:
				}
				if !strings.Contains(got, want) {
					t.Errorf("lenient %t, %s: %s, want %s", lenient, tt.answer, got, want)
				}
			})
		}
	}
}

// TestMangledAnswers reads answers with other bytes than UTF-8, behind a byte-order mark, or with a method that is null, but no such request.
func TestMangledAnswers(t *testing.T) {
	for answer, want := range map[string]string{
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":\"caf\xe9\"}":                             `"caf\ufffd"`,
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-1,\"message\":\"caf\xe9\"}}":    "caf\uFFFD (-1)",
		"\uFEFF{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":7}":                                 "7",
		`{"jsonrpc":"2.0","id":0,"method":null,"params":null,"result":7}`:                   "7",
		`{"jsonrpc":"2.0","id":0,"method":null,"result":null,"error":{"message":"m"}}`:      "m (-32603)",
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":null,\"result\":1,\"error\":\"caf\xe9\"}": "a response has an id and either a result or an error",
	} {
		bubble(t, func(t *testing.T) {
			r := running(t, echoMux(), &jsonrpc.Options{LenientAnswers: true, TextIDs: true})
			c := r.p.Start(context.Background(), "x", nil)
			r.want(`{"jsonrpc":"2.0","id":0,"method":"x"}`)
			r.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"raw\",\"params\":[\"\xe9\"]}")
			r.want(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not valid JSON at byte 50"}}`)
			r.send(`{"jsonrpc":"2.0","id":1,"method":null}`)
			r.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"method is not a string"}}`)
			r.send(answer)
			var result json.RawMessage
			got := fmt.Sprint(c.Result(&result))
			if !strings.Contains(got, want) && string(result) != strings.ReplaceAll(want, `\ufffd`, "\uFFFD") {
				t.Errorf("%q: %s, %s, want %s", answer, got, result, want)
			}
		})
	}
}

// TestEmptyAnswers ends a call whose answer has neither a result nor an error: JavaScript leaves out what is undefined.
func TestEmptyAnswers(t *testing.T) {
	const refused = `"error":{"code":-32600,"message":"no method, result or error"}}`
	for _, id := range []string{`0`, `"0"`} {
		bubble(t, func(t *testing.T) {
			r := running(t, echoMux(), &jsonrpc.Options{LenientAnswers: true, TextIDs: true})
			c := r.p.Start(context.Background(), "x", nil)
			r.want(`{"jsonrpc":"2.0","id":0,"method":"x"}`)
			r.send(`{"jsonrpc":"2.0","id":7}`) // no call of ours
			r.want(`{"jsonrpc":"2.0","id":7,` + refused)
			r.send(`{"jsonrpc":"2.0","id":` + id + `}`)
			if err := c.Result(nil); err == nil || !strings.Contains(err.Error(), "answer to x: no method, result or error") {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	bubble(t, func(t *testing.T) {
		r := running(t, echoMux(), &jsonrpc.Options{})
		c := r.p.Start(context.Background(), "x", nil)
		r.want(`{"jsonrpc":"2.0","id":0,"method":"x"}`)
		r.send(`{"jsonrpc":"2.0","id":0}`)
		r.want(`{"jsonrpc":"2.0","id":0,` + refused)
		r.send(`{"jsonrpc":"2.0","id":0,"result":1}`)
		must.OK(t, c.Result(nil))
	})
}

func TestInline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		var order []string
		h := jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			order = append(order, r.Method)
			switch r.Method {
			case "block":
				<-gate
			case "later":
				w := r.Responder()
				go func() { _ = w.Reply("later", nil) }()
			case "panic":
				panic("inline")
			}
			return r.Method, nil
		})
		r := newRaw(t, h, &jsonrpc.Options{Inline: func(r *jsonrpc.Request) bool {
			return jsonrpc.Methods("note", "ping", "later", "panic")(r) || string(r.Params) == `{"now":true}`
		}})
		r.run(context.Background())
		r.send(`{"jsonrpc":"2.0","method":"block"}`)
		r.send(`{"jsonrpc":"2.0","method":"note"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		r.want(`{"jsonrpc":"2.0","id":1,"result":"ping"}`)
		r.send(`{"jsonrpc":"2.0","id":2,"method":"later"}`)
		r.want(`{"jsonrpc":"2.0","id":2,"result":"later"}`)
		r.send(`{"jsonrpc":"2.0","id":3,"method":"panic"}`)
		r.want(`{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"internal error: the handler panicked"}}`)
		r.send(`{"jsonrpc":"2.0","id":4,"method":"behind"}`) // waits for block
		r.send(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
		r.want(`{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"id 4 is already in use"}}`)
		r.send(`{"jsonrpc":"2.0","id":5,"method":"behind","params":{"now":true}}`)
		r.want(`{"jsonrpc":"2.0","id":5,"result":"behind"}`)
		close(gate)
		r.want(`{"jsonrpc":"2.0","id":4,"result":"behind"}`)
		must.Equal(t, "order", []string{"block", "note", "ping", "later", "panic", "behind", "behind"}, order)
	})
}

// The answer to an inline request does not wait for the rest of what came with it.
func TestInlineAnswersLeave(t *testing.T) {
	const request = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	for _, tt := range []struct {
		link string
		pipe func() (io.ReadCloser, io.WriteCloser)
	}{
		{"memory", func() (io.ReadCloser, io.WriteCloser) { return io.Pipe() }},
		{"pipe", func() (io.ReadCloser, io.WriteCloser) {
			r, w, err := os.Pipe()
			must.OK(t, err)
			return r, w
		}},
	} {
		for _, rest := range []string{"", " \r\n\n", `{"jsonrpc"`, `{"jsonrpc":"2.0","method":"unknown"}` + "\n", "x\n"} {
			t.Run(tt.link+"/"+rest, func(t *testing.T) {
				t.Parallel()
				ir, iw := tt.pipe()
				or, ow := tt.pipe()
				p := jsonrpc.NewPeer(jsonrpc.Lines(ir, ow, both{ir, ow}), echoMux(), &jsonrpc.Options{
					Inline: jsonrpc.Methods("ping"),
				})
				ended := make(chan error, 1)
				go func() { ended <- p.Run(t.Context()) }()
				go func() { _, _ = io.WriteString(iw, request+rest) }() // which waits in memory
				got, err := bufio.NewReader(or).ReadString('\n')
				if err != nil || !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,`) {
					t.Errorf("%q, %v", got, err)
				}
				_, _ = p.Close(), or.Close()
				<-ended
			})
		}
	}
}

func TestResponder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		kept := make(chan *jsonrpc.Responder, 3)
		h := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			if r.IsNotification() {
				kept <- r.Responder()
				return nil, nil
			}
			if _, ok := ctx.Deadline(); ok {
				t.Error("the context has a deadline")
			}
			kept <- r.Responder()
			if r.Method == "panic" {
				panic("after detaching")
			}
			return "ignored", nil
		})
		r := running(t, h, nil)
		r.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		w := <-kept
		must.OK(t, w.Reply([]int{1}, nil))
		r.want(`{"jsonrpc":"2.0","id":1,"result":[1]}`)
		if w.Reply(nil, nil) == nil {
			t.Error("answered twice")
		}
		r.send(`{"jsonrpc":"2.0","id":2,"method":"panic"}`)
		r.want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"internal error: the handler panicked"}}`)
		if (<-kept).Reply(nil, nil) == nil {
			t.Error("answered after the panic")
		}
		r.send(`{"jsonrpc":"2.0","method":"x"}`)
		must.OK(t, (<-kept).Reply(nil, nil))
	})
}

// TestReplyAfterTheEnd checks that an answer that cannot leave any more is reported to who gives it.
func TestReplyAfterTheEnd(t *testing.T) {
	const request = `{"jsonrpc":"2.0","id":1,"method":"x"}`
	for name, end := range map[string]struct {
		send string
		how  func(r *raw)
	}{
		"Close":          {request, func(r *raw) { _ = r.p.Close() }},
		"Close, a batch": {"[" + request + `,{"jsonrpc":"2.0","id":2,"method":"kept"}]`, func(r *raw) { _ = r.p.Close() }},
		"end of input":   {request, func(r *raw) { _ = r.in.Close(); <-r.p.Done() }},
		"broken output":  {request, func(r *raw) { _ = r.end.Close(); _ = r.p.Notify(t.Context(), "n", nil) }},
	} {
		bubbles(t, name, func(t *testing.T) {
			kept := make(chan *jsonrpc.Responder, 2)
			h := jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
				w := r.Responder()
				if r.Method == "x" {
					kept <- w
				}
				return nil, nil
			})
			r := running(t, h, &jsonrpc.Options{Batches: func() bool { return true }, DrainTimeout: time.Second})
			r.send(end.send)
			w := <-kept
			end.how(r)
			synctest.Wait()
			wantErr(t, w.Reply(1, nil), jsonrpc.ErrClosed, "Reply")
			if err := w.Reply(1, nil); err == nil || errors.Is(err, jsonrpc.ErrClosed) {
				t.Errorf("a second Reply: %v", err)
			}
		})
	}
}

// TestDetachedCount checks that a detached request counts until it is answered. It uses a
// place, and requests that wait for a place count against MaxMessage.
func TestDetachedCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		kept := make(chan *jsonrpc.Responder, 10)
		h := jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			w := r.Responder()
			if strings.HasSuffix(r.Method, "early") {
				return nil, w.Reply("early", nil) // before the handler returns
			}
			kept <- w
			return nil, nil
		})
		r := newRaw(t, h, &jsonrpc.Options{MaxConcurrent: 2, MaxMessage: 700, Inline: jsonrpc.Methods("inline", "inline early")})
		ended := r.run(context.Background())
		stats := func(running, waiting int) {
			t.Helper()
			if s := r.p.Stats(); s.Running != running || s.Waiting != waiting {
				t.Errorf("got %d running and %d waiting, want %d and %d", s.Running, s.Waiting, running, waiting)
			}
		}
		for _, method := range []string{"early", "inline early"} {
			r.send(`{"jsonrpc":"2.0","id":0,"method":"` + method + `"}`)
			r.want(`{"jsonrpc":"2.0","id":0,"result":"early"}`)
			stats(0, 0)
		}
		for _, id := range []string{"1", "2", "3", "4"} {
			r.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"x"}`)
		}
		stats(2, 2)
		r.send(`{"jsonrpc":"2.0","id":5,"method":"x"}`)
		r.want(`{"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"overloaded: too much is waiting to be handled"}}`)
		r.send(`{"jsonrpc":"2.0","id":6,"method":"inline"}`)
		stats(3, 2)
		for i, id := range []string{"1", "2", "6", "3", "4"} {
			must.OK(t, (<-kept).Reply(i, nil))
			r.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%d}`, id, i))
			synctest.Wait()
		}
		stats(0, 0)
		_ = r.in.Close()
		must.OK(t, <-ended)
	})
}

func TestLimits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		h := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			<-gate
			return r.Method, nil
		})
		var problems []string
		o := &jsonrpc.Options{
			MaxConcurrent: 1, MaxMessage: 700, Cancellation: jsonrpc.LSPCancel,
			Hooks: &jsonrpc.Hooks{Problem: func(err error, _ []byte) { problems = append(problems, err.Error()) }},
		}
		r := running(t, h, o)
		r.send(`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":2,"method":"b"}`, `{"jsonrpc":"2.0","id":3,"method":"c"}`, `{"jsonrpc":"2.0","id":4,"method":"d"}`)
		overloaded := `"error":{"code":-32000,"message":"overloaded: too much is waiting to be handled"}}`
		r.want(`{"jsonrpc":"2.0","id":4,` + overloaded)
		r.send(`{"jsonrpc":"2.0","method":"n1"}`, `{"jsonrpc":"2.0","id":5,"method":"`+strings.Repeat("e", 700)+`"}`)
		r.want(`{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"message is longer than 700 bytes"}}`)
		if s := r.p.Stats(); s.Running != 1 || s.Waiting != 2 {
			t.Errorf("stats %+v", s)
		}
		r.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}}`) // before it began
		close(gate)
		r.want(`{"jsonrpc":"2.0","id":1,"result":"a"}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32800,"message":"request cancelled"}}`, `{"jsonrpc":"2.0","id":3,"result":"c"}`)
		ctx, cancel := context.WithCancel(context.Background())
		r.p.Start(ctx, "x", nil)
		cancel()
		r.want(`{"jsonrpc":"2.0","id":0,"method":"x"}`, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":0}}`)
		want := []string{
			"overloaded: too much is waiting to be handled (-32000)",
			"notification n1 dropped: overloaded: too much is waiting to be handled (-32000)",
			"message is longer than 700 bytes (-32600)",
		}
		must.Equal(t, "problems", want[1:], problems)
	})
}

// TestUnreadAnswers checks that a side that sends requests and never reads is cut off at twice MaxUnsent.
func TestUnreadAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := &jsonrpc.Options{Inline: jsonrpc.Methods("ping"), MaxUnsent: 1000}
		r := newRaw(t, echoMux(), o)
		ended := r.run(context.Background())
		for range 100 {
			_, _ = fmt.Fprintln(r.in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		}
		wantErr(t, <-ended, jsonrpc.ErrFull, "Run")
	})
}

func TestHooksAndLogger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		var seen []string
		note := func(format string, args ...any) { seen = append(seen, fmt.Sprintf(format, args...)) }
		o := &jsonrpc.Options{
			Cancellation: jsonrpc.MCPCancel,
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
				Level: slog.LevelDebug,
				ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == "time" || a.Key == "stack" {
						return slog.Attr{}
					}
					return a
				},
			})),
			Hooks: &jsonrpc.Hooks{
				Received: func(line []byte) { note("received %d", len(line)) },
				Sent:     func(line []byte) { note("sent %d", len(line)) },
				Problem:  func(err error, _ []byte) { note("problem %v", err) },
				InputEnd: func(err error) { note("ended: %v", err) },
			},
		}
		r := running(t, echoMux(), o)
		r.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"secret"}}`)
		r.want(`{"jsonrpc":"2.0","id":1,"result":{"text":"secret"}}`)
		r.send(`{"jsonrpc":"2.0","id":2,"method":"panic"}`)
		r.want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"internal error: the handler panicked"}}`)
		for _, line := range []string{ // each is sent after the one before was handled
			`{"jsonrpc":"2.0","id":"3","result":{}}`,
			`{"jsonrpc":"2.0","method":"echo","params":[]}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
		} {
			r.send(line)
		}
		c := r.p.Start(context.Background(), "ask", nil)
		r.want(`{"jsonrpc":"2.0","id":0,"method":"ask"}`)
		r.send(`{"jsonrpc":"2.0","id":0,"error":{"code":5,"message":"no"}}`)
		_ = c.Result(nil)
		_ = r.in.Close()
		synctest.Wait()
		want := []string{
			"received 67", "sent 51",
			"received 41", "sent 97",
			"received 38", "problem answer with id \"3\", which no call waits for",
			"received 45", "problem notification echo: invalid params at the top: found an array, want an object (-32602)",
			"received 52", "problem cancel notification without a valid id",
			"sent 39", "received 58", "ended: <nil>",
		}
		must.Equal(t, "hooks", want, seen)
		wantLog := `level=DEBUG msg="jsonrpc: handled" method=echo bytes=17 took=0s id=1
level=ERROR msg="jsonrpc: handler panicked" method=panic panic=boom
level=WARN msg="jsonrpc: answer with id \"3\", which no call waits for" bytes=38
level=DEBUG msg="jsonrpc: handled" method=echo bytes=2 took=0s code=-32602
level=WARN msg="jsonrpc: notification echo: invalid params at the top: found an array, want an object (-32602)" bytes=0
level=WARN msg="jsonrpc: cancel notification without a valid id" bytes=52
level=DEBUG msg="jsonrpc: called" method=ask bytes=0 took=0s id=0 code=5
`
		must.Equal(t, "log", wantLog, log.String())
	})
	bubble(t, func(t *testing.T) { // a logger without an enabled level
		o := &jsonrpc.Options{Logger: slog.New(slog.DiscardHandler)}
		a, _ := connect(t, nil, echoMux(), o, o)
		must.OK(t, a.Call(context.Background(), "raw", nil, nil))
	})
}

func TestBind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type all struct {
			B bool           `json:"b"`
			I int            `json:"i"`
			F float64        `json:"f"`
			S *string        `json:"s"`
			L []int          `json:"l"`
			M map[string]int `json:"m"`
			T time.Time      `json:"t"`
		}
		m := new(jsonrpc.Mux)
		jsonrpc.Handle(m, "x", func(context.Context, all) (struct{}, error) { return struct{}{}, nil })
		jsonrpc.Handle(m, "name", func(_ context.Context, p struct{ Name string }) (string, error) { return p.Name, nil })
		m.Default(jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			var p []int
			return p, r.Bind(&p)
		}))
		r := running(t, m, nil)
		for params, want := range map[string]string{`,"params":{"Name":"Ann"}`: "Ann", `,"params":{"name":"Ann"}`: "", ``: ""} {
			r.send(`{"jsonrpc":"2.0","id":1,"method":"name"` + params + `}`)
			r.want(`{"jsonrpc":"2.0","id":1,"result":"` + want + `"}`)
		}
		for params, want := range map[string]string{
			`{"b":"x"}`:           "invalid params at /b: found a string, want a boolean",
			`{"i":true}`:          "invalid params at /i: found a boolean, want an integer",
			`{"f":null,"s":{}}`:   "invalid params at /s: found an object, want a string",
			`{"f":[]}`:            "invalid params at /f: found an array, want a number",
			`{"l":1}`:             "invalid params at /l: found a number, want an array",
			`{"m":{"a":"x"}}`:     "invalid params at /m/a: found a string, want an integer",
			`{"m":false}`:         "invalid params at /m: found a boolean, want an object",
			`{"b":true,"b":true}`: "invalid params at /b: duplicate object member name",
			`{"s":"\ud800"}`:      "invalid params at /s: invalid surrogate pair `\\ud800\"}` in string",
		} {
			r.send(`{"jsonrpc":"2.0","id":1,"method":"x","params":` + params + `}`)
			line, _ := r.out.ReadString('\n')
			quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(want)
			if !strings.Contains(line, `"message":"`+quoted) || !strings.Contains(line, `"data":{"path":"`) {
				t.Errorf("%s: got %s want %s", params, line, want)
			}
		}
		r.send(`{"jsonrpc":"2.0","id":1,"method":"y"}`)
		r.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params at the top: found an object, want an array","data":{"path":""}}}`)
	})
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		text string
		want jsonrpc.Message
		err  string
	}{
		{text: `{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}`, want: jsonrpc.Message{ID: mcptypes.IntID(1), Method: "a", Params: json.RawMessage(`[1]`)}},
		{text: `{"jsonrpc":"2.0","method":"a"}`, want: jsonrpc.Message{Method: "a"}},
		{text: `{"jsonrpc":"2.0","id":"x","result":{}}`, want: jsonrpc.Message{ID: mcptypes.StringID("x"), Result: json.RawMessage(`{}`)}},
		{text: `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`, want: jsonrpc.Message{Error: json.RawMessage(`{"code":1}`)}, err: "a response has an id and either a result or an error (-32600)"},
		{text: `{"id":1,"method":"a"}`, want: jsonrpc.Message{ID: mcptypes.IntID(1), Method: "a"}},
		{text: `{"jsonrpc":"1.0","id":1,"method":"a"}`, want: jsonrpc.Message{ID: mcptypes.IntID(1), Method: "a"}},
		{text: `{"jsonrpc":2,"id":1,"method":"a"}`, want: jsonrpc.Message{ID: mcptypes.IntID(1), Method: "a"}, err: `jsonrpc is not "2.0" (-32600)`},
		{text: `[]`, err: "batches are not accepted (-32600)"},
		{text: `{`, err: "not valid JSON at byte 1 (-32700)"},
	} {
		got, err := jsonrpc.Parse([]byte(tt.text))
		said := ""
		if err != nil {
			said = err.Error()
		}
		if diff := cmp.Diff(tt.want, got, cmp.Comparer(func(a, b jsonrpc.ID) bool { return a == b })); diff != "" || said != tt.err {
			t.Errorf("%s: %s (-want +got):\n%s", tt.text, said, diff)
		}
	}
}
