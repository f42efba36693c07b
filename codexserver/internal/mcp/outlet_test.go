package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// loud is the answer of a client that cannot show a question, and says so.
func loud(context.Context) (string, error) { return "", &jsonrpc.Error{Code: -32000, Message: "no"} }

// progressOf returns the distinct messages of the progress in order.
func progressOf(t *testing.T, c *servertest.Client) (messages []string) {
	t.Helper()
	for _, raw := range c.Received("notifications/progress") {
		var p struct{ Message string }
		must(t, json.Unmarshal(raw, &p))
		if len(messages) == 0 || messages[len(messages)-1] != p.Message {
			messages = append(messages, p.Message)
		}
	}
	return messages
}

// TestProgressOfAQuestion checks that progress says "waiting for approval" if somebody is asked, and
// only then; and that a call that becomes a task sends none at once with its answer, where clients
// drop it.
func TestProgressOfAQuestion(t *testing.T) {
	const waiting = "waiting for approval"
	denies := approval.Rules{Deny: [][]string{{"touch"}}}
	desk := &servertest.Desk{Answer: servertest.Say(servertest.Decline)}
	for _, tt := range []struct {
		name    string
		era     servertest.Era
		answer  servertest.Answer
		options codexserver.Options
		want    bool
		silent  bool // no progress at all
	}{
		{name: "asked", era: servertest.Handshake, answer: loud, want: true},
		{name: "cannot be asked", era: servertest.Handshake},
		{name: "cannot be asked, but a desk", era: servertest.Handshake, options: codexserver.Options{Desk: desk}, want: true},
		{name: "ruled", era: servertest.Handshake, answer: loud, options: codexserver.Options{Rules: denies}},
		{name: "2026-07-28, asked", era: servertest.Rounds, answer: loud, want: true},
		{name: "2026-07-28, cannot be asked", era: servertest.Rounds},
		{name: "2026-07-28, ruled", era: servertest.Rounds, answer: loud, options: codexserver.Options{Rules: denies}},
		{name: "a task", era: servertest.Polls, answer: loud, silent: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := tt.options
				o.Home, o.Changes.Off = testenv.Home(t), true
				c := servertest.Join(t, codexserver.New(&servertest.Engine{}, &o), servertest.Host{Era: tt.era, Answer: tt.answer, Meta: `"progressToken":"t"`})
				result, err := c.Send(t.Context(), "tools/call", `"name":"codex","arguments":{"prompt":"touch say:done"}`)
				must(t, err)
				synctest.Wait()
				messages := progressOf(t, c)
				if got := slices.Contains(messages, waiting); got != tt.want || tt.silent && len(messages) > 0 {
					t.Errorf("progress %q before %s", messages, result)
				}
				if tt.silent && !strings.Contains(string(result), `"resultType":"task"`) {
					t.Errorf("no task: %s", result)
				}
			})
		})
	}
}

// TestLogLevels sets each level in both eras. A warning is sent to clients that want warnings
// or more, but not to those that want only what is worse.
func TestLogLevels(t *testing.T) {
	for level, want := range map[mcptypes.LoggingLevel]bool{
		"debug": true, "info": true, "notice": true, "warning": true,
		"error": false, "critical": false, "alert": false, "emergency": false,
	} {
		for _, era := range []servertest.Era{servertest.Handshake, servertest.Rounds} {
			t.Run(string(era)+"/"+string(level), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // who cannot be asked is warned
					h := servertest.Host{Era: era}
					if era == servertest.Rounds {
						h.Meta = fmt.Sprintf(`"io.modelcontextprotocol/logLevel":%q`, level)
					}
					c := servertest.Join(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), h)
					if era == servertest.Handshake {
						c.Ask(t, "logging/setLevel", fmt.Sprintf(`{"level":%q}`, level))
					}
					c.Use(t.Context(), "codex", `{"prompt":"p"}`)
					synctest.Wait()
					if got := len(c.Received("notifications/message")) > 0; got != want {
						t.Errorf("warned %v", got)
					}
				})
			})
		}
	}
}
