package tools_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/memdir"
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

// newNative returns the native engine, which asks for nothing, with a scripted model. The end of the test closes both.
func newNative(t *testing.T, home string, model *providertest.Server) *native.Engine {
	t.Helper()
	t.Cleanup(model.Close)
	e, err := native.New(&native.Options{CodexHome: home, Overrides: map[string]any{
		"model": "scripted", "model_provider": "local", "model_providers.local.name": "local", "model_providers.local.base_url": model.BaseURL(),
		"model_providers.local.wire_api": "responses", "approval_policy": "never", "sandbox_mode": "danger-full-access",
	}})
	must(t, err)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}
