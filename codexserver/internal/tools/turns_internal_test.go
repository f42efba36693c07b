package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// client is one client of a table whose engine ends each turn after a second, or when it is interrupted.
type client struct {
	table   *Table
	threads *thread.Share
	turns   *Turns
}

func newClient(t *testing.T, o *Options) *client {
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		select {
		case <-time.After(time.Second):
			host.Emit(protocol.TaskComplete{LastAgentMessage: new("done")})
			return nil
		case <-ctx.Done():
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	c := &client{New(e, o), thread.NewTable(e, &approve.Options{}).Share(""), NewTurns(ctx)}
	t.Cleanup(func() {
		stop()
		c.turns.Wait()
		if err := c.threads.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// call calls a tool for a request with a context, as a connection does, and reports whether the client has the result.
func (c *client) call(ctx, until context.Context, tool, arguments string) (r *mcptypes.CallToolResult, answered bool) {
	call := &Call{Threads: c.threads, Turns: c.turns, Until: until}
	r = c.table.Call(ctx, call, tool, json.RawMessage(arguments))
	if ctx.Err() != nil {
		call.GaveUp()
		return r, false
	}
	call.Answered()
	return r, true
}

// waited returns how many results codex-wait has.
func (c *client) waited(ctx context.Context, t *testing.T) int {
	var out struct{ Threads []json.RawMessage }
	r, _ := c.call(ctx, nil, waitTool.name, `{}`)
	if err := json.Unmarshal(r.StructuredContent, &out); err != nil {
		t.Error(err)
		return -1
	}
	return len(out.Threads)
}

// results is how often each end is tried at the same moment as another event: the order is chance.
const results = 100

// TestEndAtTheCancel ends a turn at the moment at which its client cancels the call. The client has the result of the call, or
// codex-wait has it, never both or neither.
func TestEndAtTheCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, nil)
		for range results {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, answered := c.call(ctx, nil, codexTool.name, `{"prompt":"x"}`)
			cancel()
			synctest.Wait()
			want := 1
			if answered {
				want = 0
			}
			if n := c.waited(t.Context(), t); n != want {
				t.Fatalf("answered %t, and codex-wait has %d results", answered, n)
			}
			if n := c.waited(t.Context(), t); n != 0 {
				t.Fatalf("codex-wait has %d results twice", n)
			}
		}
	})
}

// TestEndAtTheLimit ends a turn at the moment at which its call takes as long as it may. The result is that of the call, or
// codex-wait has it.
func TestEndAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, nil)
		for range results {
			until, cancel := context.WithTimeoutCause(t.Context(), time.Second, ErrLimit)
			r, _ := c.call(t.Context(), until, codexTool.name, `{"prompt":"x"}`)
			cancel()
			var out struct{ Status protocol.TurnStatus }
			if err := json.Unmarshal(r.StructuredContent, &out); err != nil {
				t.Fatal(err)
			}
			want := 0
			if !out.Status.Ended() {
				want = 1
			}
			if n := c.waited(t.Context(), t); n != want {
				t.Fatalf("the call says %s, and codex-wait has %d results", out.Status, n)
			}
			if n := c.waited(t.Context(), t); n != 0 {
				t.Fatalf("codex-wait has %d results twice", n)
			}
		}
	})
}

// TestReadersAtOnce has two calls of codex-wait read the result of a turn in the background, at its end: both have it, and
// nobody later.
func TestReadersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, nil)
		for range results {
			c.call(t.Context(), nil, codexTool.name, `{"prompt":"x","background":true}`)
			read := make(chan int)
			for range 2 {
				go func() { read <- c.waited(t.Context(), t) }()
			}
			if first, second := <-read, <-read; first != 1 || second != 1 {
				t.Fatalf("they have %d and %d results", first, second)
			}
			if n := c.waited(t.Context(), t); n != 0 {
				t.Fatalf("codex-wait has %d results afterwards", n)
			}
		}
	})
}

// TestWaitedForIsNotUnread has codex-wait find nothing while a call waits for its turn, and after the end until the client has
// the result of the call.
func TestWaitedForIsNotUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, nil)
		call := &Call{Threads: c.threads, Turns: c.turns}
		go c.table.Call(t.Context(), call, codexTool.name, json.RawMessage(`{"prompt":"x"}`))
		for _, when := range []string{"running", "ended"} {
			synctest.Wait()
			if n := c.waited(t.Context(), t); n != 0 {
				t.Errorf("%s: codex-wait has %d results", when, n)
			}
			time.Sleep(2 * time.Second)
		}
		call.GaveUp()
		if n := c.waited(t.Context(), t); n != 1 {
			t.Errorf("given up: codex-wait has %d results", n)
		}
	})
}

// TestNextTurnAtOnce begins a turn as soon as the one before has its result, of which only one may be under way.
func TestNextTurnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, &Options{Calls: setting.Calls{Turns: 1}})
		for i := range results {
			background := i%2 == 0
			r, _ := c.call(t.Context(), nil, codexTool.name, fmt.Sprintf(`{"prompt":"x","background":%t}`, background))
			if background {
				if n := c.waited(t.Context(), t); n != 1 {
					t.Fatalf("codex-wait has %d results", n)
				}
			}
			if r.IsError != nil {
				t.Fatalf("call %d: %q", i, textsOf(r))
			}
		}
	})
}
