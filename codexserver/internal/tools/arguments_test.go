package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

func TestBadArgumentsNameTheArgument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Connect(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), servertest.Say(servertest.Accept))
		for _, tt := range []struct {
			tool string
			args map[string]any
			want string
		}{
			{"codex", map[string]any{}, "codex: argument /prompt is missing"},
			{"codex", map[string]any{"prompt": 5}, "codex: argument /prompt: got number, want string"},
			{"codex", map[string]any{"prompt": "p", "cwd": []int{1}}, "codex: argument /cwd: got array, want string"},
			{"codex", map[string]any{"prompt": "p", "sandbox": "none"}, `codex: argument /sandbox: value must be one of "read-only", "workspace-write", "danger-full-access"`},
			{"codex", map[string]any{"prompt": "p", "sandbox": ""}, `codex: argument /sandbox: value must be one of "read-only", "workspace-write", "danger-full-access"`},
			{"codex", map[string]any{"prompt": "p", "approval-policy": ""}, `codex: argument /approval-policy: value must be one of "untrusted", "on-failure", "on-request", "never"`},
			{"codex-reply", map[string]any{"prompt": "p"}, "codex-reply: argument /threadId is missing"},
			{"codex-reply", map[string]any{"prompt": "p", "threadId": "a", "sessionId": "b"}, "codex-reply: arguments /threadId, /conversationId and /sessionId name different conversations"},
			{"codex-reply", map[string]any{"threadId": "a"}, "codex-reply: argument /prompt is missing"},
			{"codex-reply", map[string]any{"threadId": "a", "prompt": "p"}, `codex-reply: no conversation "a" in this session`},
			{"nope", map[string]any{}, `unknown tool "nope"`},
		} {
			got, err := c.Tool(t.Context(), tt.tool, tt.args)
			if err != nil {
				t.Errorf("%s %v: %v", tt.tool, tt.args, err)
				continue
			}
			if !got.IsError || len(got.Texts) != 1 || got.Texts[0] != tt.want {
				t.Errorf("%s %v: got %+v, want %q", tt.tool, tt.args, got, tt.want)
			}
		}
	})
}

func TestUnknownArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Turn: servertest.Echo}
		c := servertest.Dial(t, codexserver.New(e, nil), nil)
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
			"timeout":                "the arguments are approval-policy, background, base-instructions, budget, compact-prompt, config, cwd, developer-instructions, effort, images, include-plan-tool, model, output-schema, profile, prompt, sandbox, web-search, worktree (keys of config.toml go into config)",
			"a/b":                    "unknown argument /a~1b: the arguments are",
			"":                       "unknown argument /: the arguments are",
			strings.Repeat("é", 1e5): "/" + strings.Repeat("é", 50) + ": the arguments are",
		} {
			quoted, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"p",%s:"x"}}`, quoted))
			if !strings.Contains(got, want) || !strings.Contains(got, `"isError":true`) {
				t.Errorf("%.50s: %.300s, want %s", name, got, want)
			}
		}
		if n := len(e.Started()); n != 0 {
			t.Errorf("%d conversations were started", n)
		}
	})
}

// TestNullArguments treats null as a missing argument. codex-reply ignores unknown
// arguments, as Codex's servers did.
func TestNullArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Turn: servertest.Echo}
		c := servertest.Dial(t, codexserver.New(e, nil), nil)
		got := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","developer-instructions":null,"compact-prompt":null,"sandbox":null,"config":null,"timeout":null}}`)
		if !strings.Contains(got, `"text":"p"`) || lastConfig(e).DeveloperInstructions != nil || lastConfig(e).CompactPrompt != nil {
			t.Errorf("nulls: %s, %+v", got, lastConfig(e))
		}
		got = c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","developer-instructions":"be an expert","compact-prompt":""}}`)
		if !strings.Contains(got, `"text":"p"`) || lastConfig(e).DeveloperInstructions == nil || *lastConfig(e).DeveloperInstructions != "be an expert" || lastConfig(e).CompactPrompt == nil {
			t.Errorf("the arguments of 2026: %s, %+v", got, lastConfig(e))
		}
		got = c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q,"config":{"model":"m"},"timeout":5}}`, servertest.ThreadOf(t, got)))
		if !strings.Contains(got, `"text":"q"`) {
			t.Errorf("codex-reply with more than it knows: %s", got)
		}
	})
}

func TestThreadIDForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: servertest.Echo}, nil), nil)
		id := servertest.ThreadOf(t, c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`))
		for _, form := range []string{
			id, strings.ToUpper(id), "urn:uuid:" + id, "URN:UUID:" + strings.ToUpper(id), "{" + id + "}", strings.ReplaceAll(id, "-", ""),
		} {
			for _, name := range []string{"threadId", "conversationId", "sessionId"} {
				got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q",%q:%q}}`, name, form))
				if !strings.Contains(got, `"text":"q"`) || servertest.ThreadOf(t, got) != id {
					t.Errorf("%s %s: %s", name, form, got)
				}
			}
		}
		got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q,"conversationId":%q}}`, id, strings.ToUpper(id)))
		if !strings.Contains(got, `"text":"q"`) {
			t.Errorf("one id in two forms: %s", got)
		}
		for _, wrong := range []string{"(" + id + ")", id[1:], "urn:" + id} {
			got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q}}`, wrong))
			if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, wrong) {
				t.Errorf("%s: %s", wrong, got)
			}
		}
		if got := c.Ask(t, "tools/call", `{"name":"codex-reply","arguments":{"prompt":"q","threadId":"past"}}`); !strings.Contains(got, `"text":"q"`) {
			t.Errorf("an id that is no UUID: %s", got)
		}
	})
}

// lastConfig returns the configuration of the conversation that was started last.
func lastConfig(e *servertest.Engine) protocol.Config {
	all := e.Started()
	return all[len(all)-1].Config
}
