package jsonrpc_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

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
		if err := r.p.Call(context.Background(), "during", end, nil); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("during the call: %v", err)
		}
		if !strings.Contains(log.String(), "method=during") {
			t.Errorf("the end of the call is not in the log: %s", log.String())
		}
		if err := r.p.Call(context.Background(), "after", nil, nil); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("before the call: %v", err)
		}
		close(release)
		r.want(`{"jsonrpc":"2.0","id":1,"result":null}`) // and no call before it
		must(t, <-ended)
	})
}

// TestAnswerBeforeItsCall has another side that answers a call before it was sent, by guessing
// its id. The next call gets its own answer.
func TestAnswerBeforeItsCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRaw(t, nil, nil)
		r.run(context.Background())
		must(t, r.p.Notify(context.Background(), "fill", text{strings.Repeat("x", 50)}))
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

// TestCallsWithoutReader checks that calls return when their contexts end, or when the queue is
// full, although the other side reads nothing, and that it learns of each cancellation when it
// reads again.
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
		if err := r.p.Call(ctx, "b", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that nobody reads: %v", err)
		}
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
				if err := r.p.Call(bg, "full", nil, nil); !errors.Is(err, jsonrpc.ErrFull) {
					t.Errorf("a call without room: %v", err)
				}
			}
			cancel()
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Errorf("a call whose cancellation nobody reads: %v", err)
			}
			for range notes {
				r.want(`{"jsonrpc":"2.0","method":"n"}`)
			}
			r.want(cancelled(c.id, "context canceled"))
		}
		r.send(`{"jsonrpc":"2.0","id":0,"result":{}}`)
		must(t, first.Result(nil))
		if !strings.Contains(log.String(), "method=full") {
			t.Errorf("the refused call is not in the log: %s", log.String())
		}
	})
}

// TestInboundCancellation gives up a call under a profile of which only the other side may make use.
func TestInboundCancellation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRaw(t, nil, &jsonrpc.Options{Cancellation: &jsonrpc.CancelProfile{Method: "gone", IDMember: "id", Inbound: true}})
		r.run(context.Background())
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
		must(t, <-result)
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
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRaw(t, nil, nil)
				r.run(context.Background())
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
		if diff := cmp.Diff([]string{"note", "next", "behind"}, order); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
