package tools_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestCallConfig checks that a key of a call's config reaches the engine, is left out with
// a warning, or is refused, also by the method newConversation.
func TestCallConfig(t *testing.T) {
	const (
		hostile = `{"model_providers":{"x":{"base_url":"http://evil","env_key":"HOME"}},"model_provider":"x"}`
		along   = `{"mcp_servers":{"happy":{"command":"c"}},"notify":["sh"],"nosuch":1,"model_verbosity":"low"}`
	)
	for _, tt := range []struct {
		name           string
		trusted        bool
		method, config string
		engine         string // what it gets; "" when it is not asked
		result         []string
		events         int // warnings among them
	}{
		{"on the list", false, "tools/call", `{"model_verbosity":"low"}`, `{"model_verbosity":"low"}`, []string{`"content":[{"type":"text","text":"p"}`}, 0},
		{"left out", false, "tools/call", along, `{"model_verbosity":"low"}`, []string{
			`"content":[{"type":"text","text":"p"},{"type":"text","text":"\nargument config: \"mcp_servers.happy.command\", \"notify\" left out`,
			`calls.trusted = true in codex-mcp.toml`, `\"nosuch\" left out: no such key is known`, `"content":"p\n\nargument config`,
		}, 2},
		{"refused", false, "tools/call", hostile, "", []string{
			`"isError":true`, `codex: argument /config: a call may not set \"model_providers.x.base_url\", \"model_providers.x.env_key\"; calls.trusted = true in codex-mcp.toml allows it`,
		}, 0},
		{"none", false, "tools/call", `null`, `{}`, []string{`"text":"p"`}, 0},
		{"trusted", true, "tools/call", hostile, hostile, []string{`"content":[{"type":"text","text":"p"}`}, 0},
		{"trusted along", true, "tools/call", along, along, []string{`"content":[{"type":"text","text":"p"}`}, 0},
		{"a method", false, "newConversation", hostile, "", []string{`argument /config: a call may not set "model_providers.x.base_url", "model_providers.x.env_key"; calls.trusted = true in codex-mcp.toml allows it`}, 0},
		{"a method along", false, "newConversation", along, `{"model_verbosity":"low"}`, []string{`"conversationId"`}, 0},
		{"a trusted method", true, "newConversation", along, along, []string{`"conversationId"`}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &servertest.Engine{Turn: servertest.Echo}
				c := servertest.Dial(t, codexserver.New(e, &codexserver.Options{Calls: codexserver.CallOptions{TrustedCalls: tt.trusted}}), nil)
				params := `{"config":` + tt.config + `}`
				if tt.method == "tools/call" {
					params = `{"name":"codex","arguments":{"prompt":"p","config":` + tt.config + `}}`
				}
				result := c.Ask(t, tt.method, params)
				for _, part := range tt.result {
					if !strings.Contains(result, part) {
						t.Errorf("the result lacks %s: %s", part, result)
					}
				}
				if asked := len(e.Started()) > 0; asked != (tt.engine != "") {
					t.Fatalf("the engine was asked: %v", asked)
				}
				if tt.engine != "" {
					got := lastConfig(e)
					if got.FromCall == tt.trusted {
						t.Errorf("FromCall = %v", got.FromCall)
					}
					keys := got.Overrides
					if keys == nil {
						keys = map[string]json.RawMessage{}
					}
					text, err := json.Marshal(keys)
					if err != nil {
						t.Fatal(err)
					}
					if !sameJSON(t, tt.engine, string(text)) {
						t.Errorf("the engine got %s, want %s", text, tt.engine)
					}
				}
				events := slices.DeleteFunc(c.Heard(), func(line string) bool { return !strings.Contains(line, "argument config: ") })
				if len(events) != tt.events {
					t.Errorf("%d warnings among the events, want %d: %q", len(events), tt.events, events)
				}
			})
		})
	}
}

// TestConversationLocked checks that locked arguments and the folders of calls hold for newConversation.
func TestConversationLocked(t *testing.T) {
	folder := t.TempDir()
	for params, want := range map[string]string{
		`{"sandbox":"read-only"}`:                  "argument /sandbox is locked",
		`{"approvalPolicy":"never"}`:               "argument /approval-policy is locked",
		`{"config":{"sandbox_mode":"read-only"}}`:  "sandbox_mode is locked with the argument /sandbox",
		`{"config":{"tools":{"web_search":true}}}`: "tools.web_search is locked with the argument /web-search",
		`{"cwd":"/"}`: "argument /cwd: ",
		`{"config":{"model_verbosity":"low"},"cwd":""}`: "conversationId",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := codexserver.New(&servertest.Engine{}, &codexserver.Options{Folder: folder, Calls: codexserver.CallOptions{
				LockedArguments: []string{"approval-policy", "sandbox", "web-search"}, Folders: []string{folder},
			}})
			if got := servertest.Dial(t, s, nil).Ask(t, "newConversation", params); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", params, got, want)
			}
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	plain := func(text string) string {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(again)
	}
	return plain(a) == plain(b)
}

// TestLockedCwd refuses a locked cwd. The call works in the client's root or in the
// server's folder.
func TestLockedCwd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Chdir(t.TempDir())
		e := &servertest.Engine{Turn: servertest.Echo}
		c := servertest.Dial(t, codexserver.New(e, &codexserver.Options{Calls: codexserver.CallOptions{LockedArguments: []string{"approval-policy", "config", "cwd", "profile", "sandbox"}}}), nil)
		for _, cwd := range []string{`"/"`, `"."`, `null`} {
			if result := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","cwd":`+cwd+`}}`); !strings.Contains(result, "argument /cwd is locked") || len(e.Started()) > 0 {
				t.Errorf("cwd %s: %s", cwd, result)
			}
		}
		c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`)
		if got := lastConfig(e).Cwd; got == "" || got == "/" {
			t.Errorf("cwd %q", got)
		}
		if tools := c.Ask(t, "tools/list", `{}`); strings.Contains(tools, `"cwd": {"type": "string", "description": "Folder`) || strings.Contains(tools, `"cwd":{"type":"string","description":"Folder`) {
			t.Errorf("cwd is offered: %s", tools)
		}
	})
}
