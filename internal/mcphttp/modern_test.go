package mcphttp_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/internal/testenv"
)

const call = `"name":"codex","arguments":{"prompt":"hello"}`

// ofThread is a call that names a thread.
const ofThread = `"name":"codex-interrupt","arguments":{"threadId":"t"}`

// TestModern sends requests of 2026-07-28 whose headers agree with the body, and some whose
// headers do not.
func TestModern(t *testing.T) {
	s := open(t, echo, nil, nil)
	for _, tt := range []struct {
		name, method, params string
		change               headers
		status               int
		part                 string
	}{
		{"discover", "server/discover", "", nil, 200, `"supportedVersions"`},
		{"tools", "tools/list", "", nil, 200, `"codex-reply"`},
		{"unknown method", "no/such", "", nil, 404, `"code":-32601`},
		{"removed method", "initialize", "", nil, 404, `"code":-32601`},
		{"unknown tool", "tools/call", `"name":"nope"`, headers{"Mcp-Name": "nope"}, 200, `"code":-32602`},
		{"no name", "tools/call", ``, headers{"Mcp-Name": ""}, 200, `"code":-32602`},
		{"another version", "tools/list", "", headers{"MCP-Protocol-Version": "2025-11-25"}, 400, `"code":-32020`},
		{"no version", "tools/list", "", headers{"MCP-Protocol-Version": ""}, 400, `"code":-32020`},
		{"no method", "tools/list", "", headers{"Mcp-Method": ""}, 400, `"code":-32020`},
		{"another method", "tools/list", "", headers{"Mcp-Method": "tools/call"}, 400, `"code":-32020`},
		{"a method in another case", "tools/list", "", headers{"Mcp-Method": "Tools/List"}, 400, `"code":-32020`},
		{"another name", "tools/call", call, headers{"Mcp-Name": "codex-list"}, 400, `"code":-32020`},
		{"missing name", "tools/call", call, headers{"Mcp-Name": ""}, 400, `"code":-32020`},
		{"a name that the body lacks", "tools/call", ``, nil, 400, `"code":-32020`},
		{"broken base64", "tools/call", call, headers{"Mcp-Name": "=?base64?***?="}, 400, `"code":-32020`},
		{"other base64", "tools/call", call, headers{"Mcp-Name": "=?base64?bm9wZQ==?="}, 400, `"code":-32020`},
		{"another task", "tasks/cancel", `"taskId":"t"`, headers{"Mcp-Name": "another"}, 400, `"code":-32020`},
		{"not ASCII", "tools/call", call, headers{"Mcp-Name": "codéx"}, 400, `"code":-32020`},
		{"a mirrored thread", "tools/call", ofThread, headers{"Mcp-Name": "codex-interrupt", "Mcp-Param-Thread-Id": "t"}, 200, `"result"`},
		{"a mirrored thread in base64", "tools/call", ofThread, headers{"Mcp-Name": "codex-interrupt", "Mcp-Param-Thread-Id": "=?base64?dA==?="}, 200, `"result"`},
		{"a thread that is not mirrored", "tools/call", ofThread, headers{"Mcp-Name": "codex-interrupt", "Mcp-Param-Thread-Id": ""}, 400, `"code":-32020`},
		{"another thread", "tools/call", ofThread, headers{"Mcp-Name": "codex-interrupt", "Mcp-Param-Thread-Id": "T"}, 400, `"code":-32020`},
		{"an empty thread", "tools/call", ofThread, headers{"Mcp-Name": "codex-interrupt", "Mcp-Param-Thread-Id": " "}, 400, `"code":-32020`},
		{"a thread that the body lacks", "tools/call", call, headers{"Mcp-Param-Thread-Id": "t"}, 400, `"code":-32020`},
		{"a thread without a call", "tools/list", "", headers{"Mcp-Param-Thread-Id": "t"}, 400, `"code":-32020`},
		{"mirrored arguments", "tools/list", "", nil, 200, `"threadId":{"x-mcp-header":"Thread-Id","type":"string"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body, h := modern("7", tt.method, "{}", tt.params)
			maps.Copy(h, tt.change)
			got := s.post(body, h)
			if got.status != tt.status || !strings.Contains(got.body, tt.part) || !strings.Contains(got.body, `"id":7`) {
				t.Errorf("%d %s, want %d with %s", got.status, got.body, tt.status, tt.part)
			}
			if got.header.Get("Content-Type") != "application/json" || got.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("headers %v", got.header)
			}
		})
	}
}

// TestModernMetadata sends requests with an invalid _meta.
func TestModernMetadata(t *testing.T) {
	s := open(t, echo, nil, nil)
	for _, tt := range []struct {
		name, meta, version string
		status              int
		part                string
	}{
		{"none", `{}`, "2026-07-28", 400, `"code":-32602`},
		{"none and no header", `{}`, "", 400, `"code":-32602`},
		{"no capabilities", `{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`, "2026-07-28", 400, `"code":-32602`},
		{"no version", `{"io.modelcontextprotocol/clientCapabilities":{}}`, "2026-07-28", 400, `"code":-32602`},
		{"unknown version", `{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}`, "2099-01-01", 400, `"code":-32022`},
		{"version twice", `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":{}}`, "2026-07-28", 400, `"code":-32`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := s.post(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":`+tt.meta+`}}`,
				headers{"MCP-Protocol-Version": tt.version, "Mcp-Method": "server/discover"})
			if got.status != tt.status || !strings.Contains(got.body, tt.part) {
				t.Errorf("%d %s, want %d with %s", got.status, got.body, tt.status, tt.part)
			}
		})
	}
	if got := s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`, headers{"MCP-Protocol-Version": "2026-07-28"}); got.status != http.StatusAccepted || got.body != "" {
		t.Errorf("a notification: %+v", got)
	}
}

// TestModernRound receives a question in a result, and sends the answer with the next
// request.
func TestModernRound(t *testing.T) {
	s := open(t, asking, nil, nil)
	body, h := modern("1", "tools/call", `{"elicitation":{}}`, call)
	first := s.stream(http.MethodPost, body, h)
	state := found(t, first.until(`"input_required"`), "requestState")
	if rest := first.next(); rest != "" {
		t.Errorf("after the answer: %s", rest)
	}
	again := `"requestState":"` + state + `","inputResponses":{"q1":{"action":"accept","content":{"decision":"approved"}}},` + call
	body, h = modern("2", "tools/call", `{"elicitation":{}}`, again)
	h["Authorization"] = "Bearer bob"
	if got := s.post(body, h); strings.Contains(got.body, "decided") || !strings.Contains(got.body, `"path":"/requestState"`) {
		t.Errorf("another principal's state: %+v", got)
	}
	h["Authorization"] = "Bearer ann"
	if !s.handler.Load().Parked {
		t.Error("the load does not say that a client comes back")
	}
	if got := s.post(body, h); got.status != 200 || !strings.Contains(got.body, "decided approved") {
		t.Errorf("the second round: %+v", got)
	}
	if s.handler.Load().Parked {
		t.Error("the load says that a client comes back whose call has ended")
	}
}

// TestTaskIsNotParked leaves the question of a task open: another process could ask it again.
func TestTaskIsNotParked(t *testing.T) {
	s := open(t, asking, &codexserver.Options{Home: testenv.Home(t), Tasks: codexserver.TaskOptions{Grace: -1}}, nil)
	body, h := modern("1", "tools/call", tasks, call)
	if got := s.post(body, h); !strings.Contains(got.body, `"taskId"`) {
		t.Fatalf("no task: %+v", got)
	}
	if l := s.handler.Load(); !l.Busy || l.Parked {
		t.Errorf("load %+v", l)
	}
}
