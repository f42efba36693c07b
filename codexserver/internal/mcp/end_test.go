package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// second is an engine whose turns end after a second, or when they are interrupted.
var second = engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
	select {
	case <-time.After(time.Second):
		host.Emit(protocol.TaskComplete{LastAgentMessage: new("the answer")})
		return nil
	case <-ctx.Done():
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
	}
})

// ends is how often a turn ends at the same moment as something else: the order is chance.
const ends = 50

// TestTaskEndsAtItsCancel has the turn of a task end at the moment at which the client cancels the task. The client has the
// result from the task, or codex-wait has it.
func TestTaskEndsAtItsCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := poller(t, second, &codexserver.Options{Tasks: codexserver.TaskOptions{Grace: -1}})
		for range ends {
			began := time.Now()
			id := newTask(t, p, "go")
			<-time.After(time.Second - time.Since(began))
			raw, err := p.Send(t.Context(), "tasks/cancel", fmt.Sprintf(`"taskId":%q`, id))
			must.OK(t, err)
			must.OK(t, modern.Decode(raw, &modern.CancelTaskResult{}))
			synctest.Wait()
			want := 1
			task := getTask(t, p, id)
			if done, is := task.(*modern.CompletedTask); is {
				has(t, "the result", string(done.Result), "the answer")
				want = 0
			}
			if got := waiting(t, p); got != want {
				t.Fatalf("the task is %T, and codex-wait has %d results, want %d", task, got, want)
			}
			if got := waiting(t, p); got != 0 {
				t.Fatalf("codex-wait has %d results twice", got)
			}
		}
		p.End()
	})
}

// TestRequestEndsAtItsCancel has a turn end at the moment at which the client of 2026-07-28 cancels its request. If the client
// has the answer, codex-wait does not have it too. An answer may cross the cancel on the wire.
func TestRequestEndsAtItsCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := poller(t, second, &codexserver.Options{Tasks: codexserver.TaskOptions{Mode: "never"}})
		for range ends {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			raw, err := p.Send(ctx, "tools/call", `"name":"codex","arguments":{"prompt":"go"}`)
			cancel()
			synctest.Wait()
			got := waiting(t, p)
			if got > 1 || err == nil && got != 0 {
				t.Fatalf("the answer is %s, %v, and codex-wait has %d results", raw, err, got)
			}
			if got := waiting(t, p); got != 0 {
				t.Fatalf("codex-wait has %d results twice", got)
			}
		}
		p.End()
	})
}

// waiting returns how many results codex-wait has.
func waiting(t *testing.T, p *servertest.Client) int {
	t.Helper()
	raw, err := p.Send(t.Context(), "tools/call", `"name":"codex-wait","arguments":{}`)
	must.OK(t, err)
	var out struct {
		StructuredContent struct{ Threads []json.RawMessage }
	}
	must.OK(t, json.Unmarshal(raw, &out))
	return len(out.StructuredContent.Threads)
}
