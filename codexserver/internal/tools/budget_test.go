package tools_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// turnEnd is the end of a turn.
type turnEnd struct {
	Status, Stopped, Content string
	IsError                  bool
}

// endOf calls a tool that runs a turn, and returns its end and its thread.
func endOf(t *testing.T, c *servertest.Client, tool, arguments string) (e turnEnd, thread string) {
	t.Helper()
	var s struct {
		started
		Stopped string
	}
	r := use(t, c, tool, arguments, &s)
	if text := r.said(); text != s.Content {
		t.Errorf("the text is %q, the structured one %q", text, s.Content)
	}
	return turnEnd{s.Status, s.Stopped, s.Content, r.IsError}, s.ThreadID
}

// stops returns the result of a turn that a budget stopped.
func stops(budget, last string) turnEnd {
	text := "The turn was stopped: budget of " + budget + " reached. What it has changed stays; codex-reply continues."
	if last != "" {
		text += " The last message:\n\n" + last
	}
	return turnEnd{Status: "aborted", Stopped: "budget of " + budget + " reached", Content: text}
}

func TestBudget(t *testing.T) {
	for _, tt := range []struct {
		prompt, budget string
		want           turnEnd
		took           time.Duration
	}{
		{"say:a wait:1h say:b", `{"minutes":90}`, turnEnd{Status: "completed", Content: "a, b"}, time.Hour},
		{"say:a wait:1h say:b", `{"minutes":20}`, stops("20 minutes", "a"), 20 * time.Minute},
		{"wait:1h", `{"minutes":0.5,"tokens":7}`, stops("0.5 minutes", ""), 30 * time.Second},
		{"wait:1h", `{"minutes":1}`, stops("1 minute", ""), time.Minute},
		{"say:a make say:b", `{"minutes":1}`, stops("1 minute", "a"), time.Minute}, // no answer comes
		{"say:a wait:1h", `{"minutes":1e300}`, turnEnd{Status: "completed", Content: "a"}, time.Hour},
		{"say:a spend:40 say:b spend:40 wait:1h", `{"tokens":80}`, stops("80 tokens", "b"), 0},
		{"say:a spend:79 say:b", `{"tokens":80,"minutes":1}`, turnEnd{Status: "completed", Content: "a, b"}, 0},
		{"say:a spend:500 wait:1h", `{"tokens":1,"minutes":1}`, stops("1 token", "a"), 0},
		{"say:a", `{"tokens":80}`, turnEnd{Status: "completed", Content: "a\n\nThe budget of tokens was not held: the model's provider does not count them."}, 0},
		{"say:a spend:500", `null`, turnEnd{Status: "completed", Content: "a"}, 0},
	} {
		t.Run(tt.prompt+" "+tt.budget, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := servertest.Dial(t, codexserver.New(servertest.Script(), &codexserver.Options{Desk: &servertest.Desk{}, Approvals: elicit.Options{Timeout: -1}}), nil)
				begin := time.Now()
				first, thread := endOf(t, c, "codex", fmt.Sprintf(`{"prompt":%q,"budget":%s}`, tt.prompt, tt.budget))
				if diff := cmp.Diff(tt.want, first); diff != "" || time.Since(begin) != tt.took {
					t.Errorf("after %v (-want +got):\n%s", time.Since(begin), diff)
				}
				// The next turn has a budget of its own.
				again, _ := endOf(t, c, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":%q,"budget":%s}`, thread, tt.prompt, tt.budget))
				if diff := cmp.Diff(tt.want, again); diff != "" {
					t.Errorf("the next turn (-want +got):\n%s", diff)
				}
				if free, _ := endOf(t, c, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"spend:999 wait:24h say:free"}`, thread)); free != (turnEnd{Status: "completed", Content: "free"}) {
					t.Errorf("a turn without a budget: %+v", free)
				}
			})
		})
	}
}

// TestBudgetOfAQueuedTurn queues two turns of one thread. The time of the second starts
// when its turn starts.
func TestBudgetOfAQueuedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(servertest.Script(), nil), nil)
		_, thread := endOf(t, c, "codex", `{"prompt":"wait:1h say:first","background":true}`)
		got, _ := endOf(t, c, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"wait:9m say:second","budget":{"minutes":10}}`, thread))
		if got != (turnEnd{Status: "completed", Content: "second"}) {
			t.Errorf("%+v", got)
		}
	})
}

func TestInvalidBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Turn: servertest.Echo}
		c := servertest.Dial(t, codexserver.New(e, nil), nil)
		for budget, want := range map[string]string{
			`{}`:                              "argument /budget: want tokens, minutes or both",
			`{"tokens":null}`:                 "argument /budget: want tokens, minutes or both",
			`5`:                               "argument /budget: got number, want object",
			`{"tokens":0}`:                    "argument /budget/tokens: want at least 1",
			`{"tokens":-1,"minutes":5}`:       "argument /budget/tokens: want at least 1",
			`{"tokens":1.5}`:                  "argument /budget/tokens: the number is out of range, or written with a fraction",
			`{"tokens":99999999999999999999}`: "argument /budget/tokens: the number is out of range, or written with a fraction",
			`{"minutes":1e400}`:               "argument /budget/minutes: the number is out of range, or written with a fraction",
			`{"tokens":"five"}`:               "argument /budget/tokens: got string, want integer",
			`{"minutes":0}`:                   "argument /budget/minutes: want more than 0",
			`{"minutes":-1}`:                  "argument /budget/minutes: want more than 0",
			`{"minutes":true}`:                "argument /budget/minutes: got boolean, want number",
			`{"minutes":5,"min/utes":5}`:      "unknown argument /budget/min~1utes: did you mean minutes?",
			`{"tokens":5,"token":{}}`:         "unknown argument /budget/token: did you mean tokens?",
		} {
			for tool, call := range map[string]string{"codex": `{"prompt":"p","budget":%s}`, "codex-reply": `{"prompt":"p","threadId":"t","budget":%s}`} {
				if got, _ := endOf(t, c, tool, fmt.Sprintf(call, budget)); !got.IsError || !strings.HasSuffix(got.Content, ": "+want) {
					t.Errorf("%s %s: %+v, want %s", tool, budget, got, want)
				}
			}
		}
		if n := len(e.Started()); n != 0 {
			t.Errorf("%d conversations were started", n)
		}
	})
}

// TestBudgetWithSteer sends a message with a budget to a running turn, and without one.
func TestBudgetWithSteer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(newListener(), nil), nil)
		id := servertest.ThreadOf(t, c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"begin","background":true,"budget":{"minutes":5}}}`))
		synctest.Wait()
		steer := fmt.Sprintf(`{"threadId":%q,"prompt":"more","while-running":"steer","budget":{"minutes":1}}`, id)
		const want = "codex-reply: argument /budget: it bounds a new turn, and the message was to go to the running one; leave out the budget, or let while-running be queue or interrupt"
		if got, _ := endOf(t, c, "codex-reply", steer); got != (turnEnd{Content: want, IsError: true}) {
			t.Errorf("%+v", got)
		}
		if got := c.Ask(t, "tools/call", `{"name":"codex-wait","arguments":{"seconds":0}}`); !strings.Contains(got, `"status":"running"`) {
			t.Errorf("the turn that was not steered: %s", got)
		}
		// The message of a reply without a budget is part of the bounded turn.
		c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"more","while-running":"steer"}}`, id))
		<-time.After(6 * time.Minute)
		if got := c.Ask(t, "tools/call", `{"name":"codex-wait","arguments":{}}`); !strings.Contains(got, `"stopped":"budget of 5 minutes reached"`) {
			t.Errorf("the bounded turn: %s", got)
		}
		if got, _ := endOf(t, c, "codex-reply", steer); got != stops("1 minute", "") {
			t.Errorf("a turn of its own: %+v", got)
		}
	})
}

func TestMain(m *testing.M) {
	native.Main() // does not return in a launcher
	os.Exit(memdir.Run(m))
}

// outcome is the result of a turn with a budget.
type outcome struct {
	started
	Stopped string
	failed  bool
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
		if err := json.Unmarshal(r.StructuredContent, &s, json.MatchCaseInsensitiveNames(true)); err != nil {
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

// TestBudgetOfTheNativeEngine has one provider, or two: the first one refuses after its first answer, and what both have
// used counts.
func TestBudgetOfTheNativeEngine(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"chat", "responses"} {
		for providers := 1; providers <= 2; providers++ {
			t.Run(fmt.Sprint(wire, " ", providers), func(t *testing.T) {
				t.Parallel()
				first, second := providertest.New(), providertest.New()
				t.Cleanup(first.Close)
				t.Cleanup(second.Close)
				o := &native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
					"model": "scripted", "model_provider": "first", "approval_policy": "never", "sandbox_mode": "danger-full-access",
					"model_providers.first.name": "first", "model_providers.first.base_url": first.BaseURL(), "model_providers.first.wire_api": wire,
					"model_providers.second.name": "second", "model_providers.second.base_url": second.BaseURL(), "model_providers.second.wire_api": wire,
				}}
				script := budgetScript(func(id, script string) providertest.ToolCall { return providertest.Shell(id, "sh", "-c", script) })
				if providers == 1 {
					first.Add(script...)
				} else {
					o.Failover.To = []native.FailoverTo{{Provider: "second", Model: "n"}}
					first.Add(script[1], providertest.Turn{Repeat: true, Status: 429, Body: `{"error":{"type":"usage_limit_reached","resets_in_seconds":3600}}`})
					second.Add(script[0])
					second.Add(script[2:]...)
				}
				e, err := native.New(o)
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				engineBudget(t, e, func() int { return len(first.Requests()) + len(second.Requests()) - (providers - 1) }, 2)
			})
		}
	}
}

// newNative returns the native engine, which asks for nothing, with a scripted model. The end of the test closes both.
func newNative(t *testing.T, home string, model *providertest.Server) *native.Engine {
	t.Helper()
	t.Cleanup(model.Close)
	e, err := native.New(&native.Options{CodexHome: home, Overrides: map[string]any{
		"model": "scripted", "model_provider": "local", "model_providers.local.name": "local", "model_providers.local.base_url": model.BaseURL(),
		"model_providers.local.wire_api": "responses", "approval_policy": "never", "sandbox_mode": "danger-full-access",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}
