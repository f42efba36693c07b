//go:build realcodex

package appserver_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine/enginetest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestRealEngine tests that the real Codex keeps the promises of package engine.
func TestRealEngine(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, func(t *testing.T) *enginetest.Subject {
		var mu sync.Mutex
		var steps []enginetest.Step
		next := func(r providertest.Request) providertest.Turn {
			mu.Lock()
			if len(steps) == 0 {
				mu.Unlock()
				return failure
			}
			s := steps[0]
			steps = steps[1:]
			mu.Unlock()
			if s.Asked != nil {
				s.Asked(string(r.Body))
			}
			switch {
			case s.Fail:
				return failure
			case s.Command == nil:
				return providertest.Say(s.Text)
			}
			return providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{
				// Codex sends no output of a command's first moments.
				"cmd": "sleep 0.5; " + quoted(s.Command), "yield_time_ms": 25000, "sandbox_permissions": "require_escalated", "justification": "the suite wants it",
			}))
		}
		r := newReal(t, `sandbox_mode = "read-only"`, providertest.Turn{Repeat: true, Func: next})
		return &enginetest.Subject{
			Engine: r.engine,
			Config: protocol.Config{ApprovalPolicy: protocol.ApprovalOnRequest},
			Script: func(s ...enginetest.Step) {
				mu.Lock()
				defer mu.Unlock()
				steps = s
			},
		}
	})
}

// TestRealBudget gives a turn of the real Codex a budget of tokens, which a model that only calls commands spends.
func TestRealBudget(t *testing.T) {
	t.Parallel()
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n", providertest.Turn{
		Repeat: true, Usage: &providertest.Usage{Input: 40, Output: 20, Total: 60},
		ToolCalls: []providertest.ToolCall{providertest.Tool("", "exec_command", map[string]any{"cmd": "sleep 600", "yield_time_ms": 250})},
	})
	c := servertest.Connect(t, codexserver.New(r.engine, &codexserver.Options{Changes: codexserver.ChangeOptions{Off: true}}), nil)
	said := c.CallTool(t, "codex", fmt.Sprintf(`{"prompt":"go","cwd":%q,"budget":{"tokens":100}}`, r.cwd))
	if n := len(r.Requests()); n != 2 && n != 3 || !strings.Contains(said, "budget of 100 tokens reached") { // the third one may begin before the count
		t.Errorf("after %d requests: %s", n, said)
	}
}

var failure = providertest.Turn{Status: 400, Body: `{"error":{"message":"the model has nothing to say"}}`}

func quoted(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}
