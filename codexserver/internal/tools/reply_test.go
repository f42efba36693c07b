package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// newListener returns an engine whose turns end when the prompt, or a message within the turn,
// says "end".
func newListener() *servertest.Engine {
	e := &servertest.Engine{Messages: make(chan string, 1)}
	e.Turn = func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		words := protocol.TextOf(in)
		for !strings.HasSuffix(words, "end") {
			select {
			case m := <-e.Messages:
				words += " " + m
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		host.Emit(protocol.AgentMessage{Message: words})
		return nil
	}
	return e
}

// TestWhileRunning replies to a conversation whose turn runs in the background.
func TestWhileRunning(t *testing.T) {
	for _, tt := range []struct{ policy, prompt, reply, first string }{
		{"steer", "end", `"status":"running"`, `"content":"begin end","status":"completed"`},
		{"interrupt", "again end", `"content":"again end"`, `"content":"Turn aborted: interrupted by the client","status":"aborted"`},
	} {
		t.Run(tt.policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := servertest.Dial(t, codexserver.New(newListener(), nil), nil)
				got := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"begin","background":true}}`)
				if !strings.Contains(got, `"status":"running"`) {
					t.Errorf("in the background: %s", got)
				}
				id := servertest.ThreadOf(t, got)
				synctest.Wait()
				params := fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"prompt":%q,"while-running":%q}}`, id, tt.prompt, tt.policy)
				if got := c.Ask(t, "tools/call", params); !strings.Contains(got, tt.reply) {
					t.Errorf("the reply: %s", got)
				}
				if got := c.Ask(t, "tools/call", `{"name":"codex-wait","arguments":{}}`); !strings.Contains(got, tt.first) {
					t.Errorf("the first turn: %s", got)
				}
				if got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"the end","while-running":"steer"}}`, id)); !strings.Contains(got, `"content":"the end"`) {
					t.Errorf("a reply while nothing runs: %s", got)
				}
			})
		})
	}
}
