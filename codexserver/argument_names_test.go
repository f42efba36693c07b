package codexserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// startRecorder is an engine that records the configurations of its conversations.
type startRecorder struct {
	engine.TurnFunc
	cfg  protocol.Config
	host engine.Host
	n    int
}

func (e *startRecorder) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	e.cfg, e.host = cfg, host
	e.n++
	return e.TurnFunc.Start(ctx, cfg, host)
}

func TestUnknownArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &startRecorder{TurnFunc: echo}
		c := connectRPC(t, e)
		for name, want := range map[string]string{
			"sandbox_mode":           "unknown argument /sandbox_mode: did you mean sandbox?",
			"approval_policy":        "did you mean approval-policy?",
			"approvalPolicy":         "did you mean approval-policy?",
			"base_instructions":      "did you mean base-instructions?",
			"include_plan_tool":      "did you mean include-plan-tool?",
			"developer_instructions": "did you mean developer-instructions?",
			"Config":                 "did you mean config?",
			"promt":                  "did you mean prompt?",
			"reasoning_effort":       "did you mean effort?",
			"model_reasoning_effort": "did you mean ", // model as well
			"outputSchema":           "did you mean output-schema?",
			"schema":                 "did you mean output-schema?",
			"image":                  "did you mean images?",
			"web_search":             "did you mean web-search?",
			"writable_roots":         "did you mean writable-roots?",
			"timeout":                "the arguments are approval-policy, background, base-instructions, budget, compact-prompt, config, cwd, developer-instructions, effort, images, include-plan-tool, model, output-schema, profile, prompt, sandbox, uncommitted, web-search, worktree, writable-roots (keys of config.toml go into config)",
			"a/b":                    "unknown argument /a~1b: the arguments are",
			"":                       "unknown argument /: the arguments are",
			strings.Repeat("é", 1e5): "/" + strings.Repeat("é", 50) + ": the arguments are",
		} {
			quoted, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			got := c.ask(t, "tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"p",%s:"x"}}`, quoted))
			if !strings.Contains(got, want) || !strings.Contains(got, `"isError":true`) {
				t.Errorf("%.50s: %.300s, want %s", name, got, want)
			}
		}
		if e.n != 0 {
			t.Errorf("%d conversations were started", e.n)
		}
	})
}

// TestNullArguments treats null as a missing argument. codex-reply ignores unknown
// arguments, as Codex's servers did.
func TestNullArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &startRecorder{TurnFunc: echo}
		c := connectRPC(t, e)
		got := c.ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","developer-instructions":null,"compact-prompt":null,"sandbox":null,"config":null,"timeout":null}}`)
		if !strings.Contains(got, `"text":"p"`) || e.cfg.DeveloperInstructions != nil || e.cfg.CompactPrompt != nil {
			t.Errorf("nulls: %s, %+v", got, e.cfg)
		}
		got = c.ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","developer-instructions":"be an expert","compact-prompt":""}}`)
		if !strings.Contains(got, `"text":"p"`) || e.cfg.DeveloperInstructions == nil || *e.cfg.DeveloperInstructions != "be an expert" || e.cfg.CompactPrompt == nil {
			t.Errorf("the arguments of 2026: %s, %+v", got, e.cfg)
		}
		got = c.ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q,"config":{"model":"m"},"timeout":5}}`, threadOf(t, got)))
		if !strings.Contains(got, `"text":"q"`) {
			t.Errorf("codex-reply with more than it knows: %s", got)
		}
	})
}

// threadOf returns the thread's id in a tool's result.
func threadOf(t *testing.T, result string) string {
	t.Helper()
	var r struct {
		StructuredContent struct{ ThreadID string }
	}
	if err := json.Unmarshal([]byte(result), &r); err != nil || r.StructuredContent.ThreadID == "" {
		t.Fatalf("no threadId in %s (%v)", result, err)
	}
	return r.StructuredContent.ThreadID
}

func TestThreadIDForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectRPC(t, &full{TurnFunc: echo})
		id := threadOf(t, c.ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`))
		for _, form := range []string{
			id, strings.ToUpper(id), "urn:uuid:" + id, "URN:UUID:" + strings.ToUpper(id), "{" + id + "}", strings.ReplaceAll(id, "-", ""),
		} {
			for _, name := range []string{"threadId", "conversationId", "sessionId"} {
				got := c.ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q",%q:%q}}`, name, form))
				if !strings.Contains(got, `"text":"q"`) || threadOf(t, got) != id {
					t.Errorf("%s %s: %s", name, form, got)
				}
			}
		}
		got := c.ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q,"conversationId":%q}}`, id, strings.ToUpper(id)))
		if !strings.Contains(got, `"text":"q"`) {
			t.Errorf("one id in two forms: %s", got)
		}
		for _, wrong := range []string{"(" + id + ")", id[1:], "urn:" + id} {
			got := c.ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q}}`, wrong))
			if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, wrong) {
				t.Errorf("%s: %s", wrong, got)
			}
		}
		if got := c.ask(t, "tools/call", `{"name":"codex-reply","arguments":{"prompt":"q","threadId":"past"}}`); !strings.Contains(got, `"text":"q"`) {
			t.Errorf("an id that is no UUID: %s", got)
		}
	})
}
