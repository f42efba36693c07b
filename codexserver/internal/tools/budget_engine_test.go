package tools_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/go-json-experiment/json"
)

func TestMain(m *testing.M) {
	native.Main() // does not return in a launcher
	os.Exit(memdir.Run(m))
}

// outcome is the result of a turn with a budget.
type outcome struct {
	ThreadID string `json:"threadId"`
	Status   string `json:"status"`
	Stopped  string `json:"stopped"`
	Content  string `json:"content"`
	Commands []struct {
		Command string `json:"command"`
	} `json:"commands"`
	failed bool
}

// engineBudget runs turns that reach a budget of tokens and one of time, and then a turn
// within its budget. The model is [budgetScript]. most is the number of requests that the
// engine may make before it stops for the tokens.
func engineBudget(t *testing.T, e engine.Engine, requests func() int, most int) {
	share := thread.NewTable(e, &approve.Options{}).Share("")
	defer share.Close()
	turns := tools.NewTurns(t.Context())
	table := tools.New(e, nil)
	dir := t.TempDir()
	call := func(tool, arguments string) (s outcome) {
		t.Helper()
		c := &tools.Call{
			Threads: share, Turns: turns, Awaited: thread.Attend{Awaited: true},
			Folder: func(context.Context) string { return dir },
		}
		r := table.Call(t.Context(), c, tool, []byte(arguments))
		if err := json.Unmarshal(r.StructuredContent, &s); err != nil {
			t.Fatalf("%s: %v", r.StructuredContent, err)
		}
		s.failed = r.IsError != nil
		t.Logf("%s", r.StructuredContent)
		return s
	}

	first := call("codex", `{"prompt":"go","budget":{"tokens":120,"minutes":10}}`)
	if first.Status != "aborted" || first.Stopped != "budget of 120 tokens reached" || first.failed ||
		!strings.HasPrefix(first.Content, "The turn was stopped: budget of 120 tokens reached.") || !strings.Contains(first.Content+"\n", "\n\none\n") {
		t.Errorf("the tokens: %+v", first)
	}
	if n := requests(); n < 2 || n > most {
		t.Errorf("%d requests to the model for 120 tokens, want 2", n)
	}
	b, err := os.ReadFile(filepath.Join(dir, "ran"))
	if err != nil || string(b) == "" {
		t.Errorf("the work of the stopped turn is lost: %q, %v", b, err)
	}
	if most == 2 && string(b) != "1\n" { // the engine looks at the budget before it runs commands
		t.Errorf("the commands of a response that used up the budget ran: %q", b)
	}

	// The call returns only if the command was stopped.
	reply := fmt.Sprintf(`{"threadId":%q,"prompt":`, first.ThreadID)
	second := call("codex-reply", reply+`"go on","budget":{"minutes":0.01}}`)
	if second.Status != "aborted" || second.Stopped != "budget of 0.01 minutes reached" || second.failed {
		t.Errorf("the time: %+v", second)
	}
	third := call("codex-reply", reply+`"to its end","budget":{"tokens":1000}}`)
	if third.Status != "completed" || third.Stopped != "" || !strings.HasPrefix(third.Content+"\n", "whole\n") {
		t.Errorf("the next turn: %+v", third)
	}
}

// budgetScript is the model of [engineBudget]. It says "one" and runs a command, twice for 60
// tokens each. Then it runs a command that does not end. To the last prompt it says "whole".
func budgetScript(run func(id, script string) providertest.ToolCall) []providertest.Turn {
	spend := func(id string) providertest.Turn {
		return providertest.Turn{Text: []string{"one"}, ToolCalls: []providertest.ToolCall{run(id, "echo "+id+" >> ran")}, Usage: &providertest.Usage{Input: 50, Output: 10}}
	}
	whole := providertest.Say("whole")
	whole.Match = "to its end" // the endless command may not have been requested
	endless := providertest.Call(run("3", "sleep 100000"))
	endless.Repeat = true
	return []providertest.Turn{whole, spend("1"), spend("2"), endless}
}

func TestBudgetOfTheNativeEngine(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"chat", "responses"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			model := providertest.New(budgetScript(func(id, script string) providertest.ToolCall {
				return providertest.Shell(id, "sh", "-c", script)
			})...)
			defer model.Close()
			e, err := native.New(&native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
				"model": "scripted", "model_provider": "local", "model_providers.local.name": "local", "model_providers.local.base_url": model.BaseURL(),
				"model_providers.local.wire_api": wire, "approval_policy": "never", "sandbox_mode": "danger-full-access",
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			engineBudget(t, e, func() int { return len(model.Requests()) }, 2)
		})
	}
}

// splitBudget is the model of [engineBudget] at two providers: the first one refuses after its first
// answer. Requests returns how many were answered until the second one had answered once.
func splitBudget(t *testing.T, ours, theirs func(id, script string) providertest.ToolCall) (first, second *providertest.Server, requests func() int) {
	first, second = providertest.New(budgetScript(ours)[1]), providertest.New(budgetScript(theirs)[:1]...)
	first.Add(providertest.Turn{Repeat: true, Status: 429, Body: `{"error":{"type":"usage_limit_reached","resets_in_seconds":3600}}`})
	second.Add(budgetScript(theirs)[2:]...)
	t.Cleanup(first.Close)
	t.Cleanup(second.Close)
	return first, second, func() int { return len(first.Requests()) - 1 + len(second.Requests()) }
}

// TestBudgetOfTwoProviders has a turn whose provider refuses: what both have used counts.
func TestBudgetOfTwoProviders(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"chat", "responses"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			shell := func(id, script string) providertest.ToolCall { return providertest.Shell(id, "sh", "-c", script) }
			first, second, requests := splitBudget(t, shell, shell)
			e, err := native.New(&native.Options{CodexHome: t.TempDir(), Failover: native.Failover{To: []native.FailoverTo{{Provider: "second", Model: "n"}}}, Overrides: map[string]any{
				"model": "scripted", "model_provider": "first", "approval_policy": "never", "sandbox_mode": "danger-full-access",
				"model_providers.first.name": "first", "model_providers.first.base_url": first.BaseURL(), "model_providers.first.wire_api": wire,
				"model_providers.second.name": "second", "model_providers.second.base_url": second.BaseURL(), "model_providers.second.wire_api": wire,
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			engineBudget(t, e, requests, 2)
		})
	}
}
