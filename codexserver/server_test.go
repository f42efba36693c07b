package codexserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

func TestCancelledCallIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{}, 1)
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
			if in[0].Text == "short" {
				host.Emit(protocol.AgentMessage{Message: "still here"})
				return nil
			}
			began <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		c := servertest.Connect(t, codexserver.New(e, nil), nil)
		begun, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "short"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-began; cancel() }()
		if _, err := c.Tool(ctx, "codex-reply", map[string]any{"prompt": "long", "threadId": begun.Thread}); !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled call returned %v", err)
		}
		got, err := c.Tool(t.Context(), "codex-reply", map[string]any{"prompt": "short", "threadId": begun.Thread})
		if err != nil || got.Content != "still here" {
			t.Errorf("after a cancelled turn: %+v, %v", got, err)
		}
		synctest.Wait()
		want := []string{
			"session_configured", "task_started", "agent_message", "task_complete",
			"task_started", "turn_aborted",
			"task_started", "agent_message", "task_complete",
		}
		if diff := cmp.Diff(want, c.Events()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestFailedTurnIsAnErrorResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine.TurnFunc(func(context.Context, engine.Host, []protocol.InputItem) error {
			return errors.New("the model is not there")
		})
		c := servertest.Connect(t, codexserver.New(e, nil), nil)
		got, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "p"})
		if err != nil {
			t.Fatal(err)
		}
		want := servertest.Result{Texts: []string{"the model is not there"}, Content: "the model is not there", Thread: got.Thread, IsError: true}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"session_configured", "task_started", "error"}, c.Events()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestEveryRequestIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), nil)
		for _, tt := range []struct {
			method, params string
			want           jsonrpc.Code
		}{
			{"server/discover", `{}`, jsonrpc.CodeMethodNotFound}, // says no version
			{"prompts/list", `{}`, jsonrpc.CodeMethodNotFound},
			{"resources/read", `{}`, jsonrpc.CodeMethodNotFound},
			{"initialize", `{"protocolVersion":5}`, jsonrpc.CodeInvalidParams},
			{"tools/call", `{"arguments":{}}`, jsonrpc.CodeInvalidParams},
			{"tools/call", `{"name":7}`, jsonrpc.CodeInvalidParams},
			{"logging/setLevel", `{"level":"loud"}`, jsonrpc.CodeInvalidParams},
		} {
			err := c.Call(t.Context(), tt.method, json.RawMessage(tt.params), nil)
			if !errors.Is(err, tt.want) {
				t.Errorf("%s %s: %v, want %v", tt.method, tt.params, err, tt.want)
			}
		}
		if err := c.Call(t.Context(), "ping", nil, nil); err != nil {
			t.Errorf("ping: %v", err)
		}
	})
}

// TestBusyAfterTheClient has a turn in the background outlive its client. A server that stops idle
// principals asks Busy.
func TestBusyAfterTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := codexserver.New(servertest.Script(), nil).Principal(t.Context(), "ann")
		c := servertest.Connect(t, p, nil)
		if p.Busy() {
			t.Error("busy without a turn")
		}
		if _, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "wait:1h", "background": true}); err != nil {
			t.Fatal(err)
		}
		for _, connected := range []bool{true, false} {
			if !connected {
				c.Close()
				synctest.Wait()
			}
			if !p.Busy() {
				t.Errorf("not busy during the turn, connected %t", connected)
			}
		}
		time.Sleep(2 * time.Hour)
		if p.Busy() {
			t.Error("busy after the turn")
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}
