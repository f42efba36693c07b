package mcptool_test

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
	"github.com/google/go-cmp/cmp"
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

// TestReplyShortensHistory calls codex-reply with rollback and compact.
func TestReplyShortensHistory(t *testing.T) {
	for name, tt := range map[string]struct {
		arguments string
		want      string // a part of the answer
		in        *protocol.TurnInput
	}{
		"rollback":             {`"rollback":2`, `"status":"completed"`, &protocol.TurnInput{Rollback: 2}},
		"rollback, no words":   {`"rollback":2,"prompt":""`, `"status":"completed"`, &protocol.TurnInput{Rollback: 2}},
		"compact and a prompt": {`"compact":true,"prompt":"go on"`, `"content":"go on"`, &protocol.TurnInput{Compact: true, Items: protocol.TextInput("go on")}},
		"nothing":              {`"compact":false`, "argument /prompt is missing", nil},
		"rollback of nothing":  {`"rollback":0`, "argument /rollback", nil},
		"a running turn":       {`"rollback":1,"while-running":"interrupt"`, "argument /while-running", nil},
		"another spelling":     {`"Rollback":1,"prompt":"p"`, "did you mean rollback?", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &servertest.Engine{Turn: servertest.Echo}
				c := servertest.Dial(t, codexserver.New(e, nil), nil)
				id := servertest.ThreadOf(t, c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"begin"}}`))
				got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,%s}}`, id, tt.arguments))
				if !strings.Contains(got, tt.want) {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				turns := e.Turns()[1:]
				if tt.in == nil && len(turns) != 0 || tt.in != nil && (len(turns) != 1 || !cmp.Equal(turns[0], *tt.in)) {
					t.Errorf("turns %+v, want %+v", turns, tt.in)
				}
			})
		})
	}
}

// TestReplyShortensNoRunningTurn checks that the history of a conversation does not change
// while a turn runs or waits, whose result no caller has.
func TestReplyShortensNoRunningTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newListener()
		c := servertest.Dial(t, codexserver.New(e, nil), nil)
		id := servertest.ThreadOf(t, c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"begin","background":true}}`))
		synctest.Wait()
		reply := fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"rollback":1,"background":true}}`, id)
		if got := c.Ask(t, "tools/call", reply); !strings.Contains(got, "a turn of this conversation runs") {
			t.Errorf("while a turn runs: %s", got)
		}
		e.Messages <- "end"
		if got := c.Ask(t, "tools/call", `{"name":"codex-wait","arguments":{}}`); !strings.Contains(got, `"content":"begin end"`) {
			t.Errorf("the turn: %s", got)
		}
		if n := len(e.Turns()); n != 1 {
			t.Errorf("%d turns have begun, want 1", n)
		}
		if got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"rollback":1,"prompt":"end"}}`, id)); !strings.Contains(got, `"content":"end"`) {
			t.Errorf("after the turn: %s", got)
		}
	})
}

// TestReplyCannotShorten uses an engine that keeps its own history.
func TestReplyCannotShorten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil)
		id := servertest.ThreadOf(t, c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"begin"}}`))
		if got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"compact":true}}`, id)); !strings.Contains(got, "keeps its own history") {
			t.Errorf("got %s", got)
		}
	})
}
