package mcp_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestVersions checks the results for clients of every version. All have the thread's id.
func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		asked, spoken             string
		annotations, outputSchema bool
	}{
		{"2024-11-05", "2024-11-05", false, false},
		{"2025-03-26", "2025-03-26", true, false},
		{"2025-06-18", "2025-06-18", true, true},
		{"2025-11-25", "2025-11-25", true, true},
		{"2099-01-01", "2025-11-25", true, true},
		{"bogus", "2025-11-25", true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil)
			hello := c.Ask(t, "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}`, tt.asked))
			if !strings.Contains(hello, fmt.Sprintf(`"protocolVersion":%q`, tt.spoken)) {
				t.Errorf("%s: %s", tt.asked, hello)
			}
			tools := c.Ask(t, "tools/list", `{}`)
			result := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"},"_meta":{"progressToken":1}}`)
			for what, is := range map[string][2]bool{
				"annotations":       {strings.Contains(tools, `"annotations"`), tt.annotations},
				"outputSchema":      {strings.Contains(tools, `"outputSchema"`), tt.outputSchema},
				"structuredContent": {strings.Contains(result, `"structuredContent":{"threadId":"`), true}, // as Codex did
			} {
				if is[0] != is[1] {
					t.Errorf("%s: %s is there: %v", tt.asked, what, is[0])
				}
			}
			if again := c.Ask(t, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`); !strings.Contains(again, "(-32600)") {
				t.Errorf("a second initialize: %s", again)
			}
		})
	}
}

// TestElicitationCapability asks only clients that declared forms.
func TestElicitationCapability(t *testing.T) {
	for capabilities, asked := range map[string]bool{
		`{}`:                                   false,
		`{"elicitation":null}`:                 false,
		`{"elicitation":{}}`:                   true,
		`{"elicitation":{"form":{}}}`:          true,
		`{"elicitation":{"url":{}}}`:           false,
		`{"elicitation":{"form":{},"url":{}}}`: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), nil)
			c.Ask(t, "initialize", fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}`, capabilities))
			c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`)
			was := slices.ContainsFunc(c.Heard(), func(line string) bool { return strings.HasPrefix(line, "elicitation/create") })
			if was != asked {
				t.Errorf("%s: asked %v, want %v", capabilities, was, asked)
			}
		})
	}
}

// TestFolder checks the working folder of calls without cwd: that of the options, and without one the root of the client,
// which is asked only then.
func TestFolder(t *testing.T) {
	for _, folder := range []string{"/the/default", ""} {
		synctest.Test(t, func(t *testing.T) {
			e := &servertest.Engine{Turn: servertest.Echo}
			c := servertest.Join(t, codexserver.New(e, &codexserver.Options{Folder: folder}), servertest.Host{
				Era: servertest.Handshake, Capabilities: `"roots":{}`, Roots: `{"roots":[{"uri":"https://x/"},{"uri":"file:///some/where"}]}`,
			})
			for _, tt := range []struct{ method, params, want string }{
				{"tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`, cmp.Or(folder, "/some/where")},
				{"tools/call", `{"name":"codex","arguments":{"prompt":"p","cwd":"/else/where"}}`, "/else/where"},
				{"newConversation", `{}`, "/the/default"},
				{"newConversation", `{"cwd":"/else/where"}`, "/else/where"},
			} {
				if folder == "" && tt.params == `{}` {
					continue // the server's own
				}
				c.Ask(t, tt.method, tt.params)
				all := e.Started()
				if got := all[len(all)-1].Config.Cwd; got != tt.want {
					t.Errorf("%s %s: cwd %q, want %q", tt.method, tt.params, got, tt.want)
				}
			}
			if asked := len(c.Received("roots/list")) > 0; asked != (folder == "") {
				t.Errorf("folder %q: the client was asked for roots: %t", folder, asked)
			}
		})
	}
}

// TestArgumentsAsAText has clients that send all arguments as one text with JSON, in both eras. Other texts are
// refused.
func TestArgumentsAsAText(t *testing.T) {
	c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil)
	for _, meta := range []string{"", `,"_meta":{` + version2026 + `,"io.modelcontextprotocol/clientCapabilities":{}}`} {
		for arguments, answered := range map[string]bool{
			`"{\"prompt\": \"hello\"}"`: true, `" {\"prompt\":\"hello\"}\n"`: true, `{"prompt":"hello"}`: true,
			`"hello"`: false, `""`: false, `"[]"`: false, `"{\"prompt\":\"hello\"} x"`: false, `"{\"prompt\":\"a\",\"prompt\":\"hello\"}"`: false, `[{"prompt":"hello"}]`: false,
		} {
			var result struct {
				IsError bool `json:"isError"`
				Content []struct {
					Text string `json:"text"`
				} `json:"content"`
			}
			err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"codex","arguments":`+arguments+meta+`}`), &result)
			if ok := err == nil && !result.IsError && len(result.Content) > 0 && strings.Contains(result.Content[0].Text, "hello"); ok != answered {
				t.Errorf("%s%s: %+v, %v", arguments, meta, result, err)
			}
		}
	}
}

// TestBatch sends batches, which only clients of 2025-03-26 may send. The answer to a question
// comes in one too.
func TestBatch(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			w := &servertest.Worker{}
			ours := servertest.Lines(t, codexserver.New(w.Engine(), nil))
			send := func(line string) { writeAll(t, ours, line) }
			ping := `[{"jsonrpc":"2.0","id":7,"method":"ping"}]`
			const refused = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not accepted"}}`
			send(ping)
			if got := until(t, ours, `"id"`); got != refused {
				t.Errorf("before initialize: %s", got)
			}
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`, version))
			until(t, ours, `"id":0`)
			send(ping)
			got := until(t, ours, `"id"`)
			if version != "2025-03-26" {
				if got != refused {
					t.Errorf("%s: %s", version, got)
				}
			} else {
				if got != `[{"jsonrpc":"2.0","id":7,"result":{}}]` {
					t.Errorf("%s", got)
				}
				send(`[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"git"}}},` +
					`{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}]`)
				until(t, ours, `"elicitation/create"`)
				send(`[{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{}}},{"jsonrpc":"2.0","id":0,"result":{"action":"cancel"}}]`)
				got := until(t, ours, `[{"jsonrpc"`)
				for _, part := range []string{`{"jsonrpc":"2.0","id":2,"result":{}}`, `"id":3,"error":{"code":-32602`, `"id":1,"result":`, "git: approved"} {
					if !strings.Contains(got, part) {
						t.Errorf("no %s in %s", part, got)
					}
				}
				if w.Did() != "1 git" {
					t.Error(w.Did())
				}
			}
		})
	}
}
