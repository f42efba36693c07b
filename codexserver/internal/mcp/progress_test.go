package mcp_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

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
				o.Home, o.Changes.Off = t.TempDir(), true
				c := servertest.Join(t, codexserver.New(&servertest.Engine{}, &o), servertest.Host{Era: tt.era, Answer: tt.answer, Meta: `"progressToken":"t"`})
				result, err := c.Send(t.Context(), "tools/call", `"name":"codex","arguments":{"prompt":"touch say:done"}`)
				if err != nil {
					t.Fatal(err)
				}
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
