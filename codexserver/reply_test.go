package codexserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// listener is an engine whose turns end when the prompt, or a message within the turn,
// says "end".
type listener struct{}

func (listener) Start(_ context.Context, _ protocol.Config, h engine.Host) (engine.Conversation, error) {
	h.Emit(protocol.SessionConfigured{SessionID: "thread"})
	return &dialogue{host: h, messages: make(chan string, 1)}, nil
}

type dialogue struct {
	host     engine.Host
	messages chan string
}

func (*dialogue) ID() string   { return "thread" }
func (*dialogue) Close() error { return nil }

func (d *dialogue) Turn(ctx context.Context, in protocol.TurnInput) error {
	d.host.Emit(protocol.TaskStarted{})
	words := protocol.TextOf(in.Items)
	for !strings.HasSuffix(words, "end") {
		select {
		case m := <-d.messages:
			words += " " + m
		case <-ctx.Done():
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		}
	}
	d.host.Emit(protocol.TaskComplete{LastAgentMessage: &words})
	return nil
}

func (d *dialogue) Steer(_ context.Context, items []protocol.InputItem) error {
	d.messages <- protocol.TextOf(items)
	return nil
}

// TestWhileRunning replies to a conversation whose turn runs in the background.
func TestWhileRunning(t *testing.T) {
	for _, tt := range []struct{ policy, prompt, reply, first string }{
		{"steer", "end", `"status":"running"`, `"content":"begin end","status":"completed"`},
		{"interrupt", "again end", `"content":"again end"`, `"content":"Turn aborted: interrupted by the client","status":"aborted"`},
	} {
		t.Run(tt.policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connectWith(t, listener{}, nil)
				if got := c.ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"begin","background":true}}`); !strings.Contains(got, `"status":"running"`) {
					t.Errorf("in the background: %s", got)
				}
				synctest.Wait()
				params := fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":"thread","prompt":%q,"while-running":%q}}`, tt.prompt, tt.policy)
				if got := c.ask(t, "tools/call", params); !strings.Contains(got, tt.reply) {
					t.Errorf("the reply: %s", got)
				}
				if got := c.ask(t, "tools/call", `{"name":"codex-wait","arguments":{}}`); !strings.Contains(got, tt.first) {
					t.Errorf("the first turn: %s", got)
				}
				if got := c.ask(t, "tools/call", `{"name":"codex-reply","arguments":{"threadId":"thread","prompt":"the end","while-running":"steer"}}`); !strings.Contains(got, `"content":"the end"`) {
					t.Errorf("a reply while nothing runs: %s", got)
				}
			})
		})
	}
}
