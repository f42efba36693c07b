package mcphttp_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

func codex(id, prompt, meta string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":%q},"_meta":{%s}}}`, id, prompt, meta)
}

// TestSession uses a session from initialize to DELETE.
func TestSession(t *testing.T) {
	s := open(t, asking, nil, nil)
	h := s.initialize(nil)
	if got := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, h); got.status != 202 || got.body != "" {
		t.Errorf("initialized: %+v", got)
	}
	if got := s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, h); got.status != 200 || !strings.Contains(got.body, `"codex-reply"`) {
		t.Errorf("tools: %+v", got)
	}
	if got := s.post(`{"jsonrpc":"2.0","id":1,"method":"no/such"}`, h); got.status != 200 || !strings.Contains(got.body, `-32601`) {
		t.Errorf("unknown method: %+v", got)
	}
	// The question is sent on the stream of its call, although the client also reads a GET.
	standing := s.stream(http.MethodGet, "", h)
	v := s.stream(http.MethodPost, codex(`"a"`, "go", `"progressToken":"tok"`), h)
	v.until(`"progressToken":"tok"`)
	question := v.until(`"elicitation/create"`)
	if !strings.Contains(question, `"id":0`) {
		t.Fatalf("question %s", question)
	}
	if got := s.post(`{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"decision":"approved"}}}`, h); got.status != 202 {
		t.Errorf("the answer: %+v", got)
	}
	if answer := v.until(`"result"`); !strings.Contains(answer, "decided approved") || !strings.Contains(answer, `"id":"a"`) {
		t.Errorf("answer %s", answer)
	}
	if rest := v.next(); rest != "" {
		t.Errorf("after the answer: %s", rest)
	}
	if got := s.do(http.MethodDelete, "", h); got.status != 204 {
		t.Errorf("DELETE: %+v", got)
	}
	if rest := standing.next(); rest != "" {
		t.Errorf("on the standing stream: %s", rest)
	}
	for method, body := range map[string]string{http.MethodPost: ping, http.MethodGet: "", http.MethodDelete: ""} {
		if got := s.do(method, body, h); got.status != 404 {
			t.Errorf("%s after the end: %+v", method, got)
		}
	}
}

// TestSessionRefusals sends messages that a session refuses.
func TestSessionRefusals(t *testing.T) {
	s := open(t, echo, nil, nil)
	mine := s.initialize(nil)
	with := func(name, value string) headers {
		h := headers{}
		maps.Copy(h, mine)
		h[name] = value
		return h
	}
	for _, tt := range []struct {
		name, method, body string
		h                  headers
		status             int
		part               string
	}{
		{"works", "POST", ping, mine, 200, `"result":{}`},
		{"no version header", "POST", ping, with("MCP-Protocol-Version", ""), 200, `"result":{}`},
		{"another principal", "POST", ping, with("Authorization", "Bearer bob"), 404, "no such session"},
		{"another principal's GET", "GET", "", with("Authorization", "Bearer bob"), 404, "no such session"},
		{"another principal's DELETE", "DELETE", "", with("Authorization", "Bearer bob"), 404, "no such session"},
		{"a guessed session", "POST", ping, with("Mcp-Session-Id", "guess"), 404, "no such session"},
		{"no session", "POST", ping, with("Mcp-Session-Id", ""), 400, `-32602`},
		{"a notification without a session", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, with("Mcp-Session-Id", ""), 400, `-32600`},
		{"unknown version", "POST", ping, with("MCP-Protocol-Version", "1900-01-01"), 400, "unknown version"},
		{"unknown version of a GET", "GET", "", with("MCP-Protocol-Version", "1900-01-01"), 400, "unknown version"},
		{"GET without a session", "GET", "", with("Mcp-Session-Id", ""), 405, "POST"},
		{"DELETE without a session", "DELETE", "", with("Mcp-Session-Id", ""), 405, "POST"},
		{"PUT", "PUT", ping, mine, 405, "POST"},
		{"GET without events", "GET", "", with("Accept", "application/json"), 406, "Accept"},
		{"POST without events", "POST", ping, with("Accept", "application/json"), 406, "Accept"},
		{"GET with an unknown event", "GET", "", with("Last-Event-ID", "9-1"), 400, "not kept"},
		{"GET with a broken event", "GET", "", with("Last-Event-ID", "x"), 400, "not kept"},
		{"a batch", "POST", "[" + ping + "]", mine, 400, "batches are not accepted"},
		{"not JSON", "POST", `{"jsonrpc"`, mine, 400, `-32700`},
		{"two messages", "POST", ping + ping, mine, 400, `-32700`},
		{"not UTF-8", "POST", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", mine, 400, `-32700`},
		{"a member twice", "POST", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, mine, 400, `twice`},
		{"an id that is an object", "POST", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, mine, 400, `-32600`},
		{"a number", "POST", `5`, mine, 400, `-32600`},
		{"neither", "POST", `{"jsonrpc":"2.0","id":1}`, mine, 400, `-32600`},
		{"both", "POST", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, mine, 400, `-32600`},
		{"an empty body", "POST", ``, mine, 400, `-32700`},
		{"another type", "POST", ping, with("Content-Type", "text/plain"), 415, "application/json"},
		{"a coded body", "POST", ping, with("Content-Encoding", "gzip"), 415, "Content-Encoding"},
		{"a method of 2025 that starts a conversation", "POST", `{"jsonrpc":"2.0","id":1,"method":"newConversation","params":{"sandbox":"danger-full-access","approvalPolicy":"never"}}`, mine, 200, "-32601"},
		{"initialize again", "POST", hello, mine, 200, "more than once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.do(tt.method, tt.body, tt.h); got.status != tt.status || !strings.Contains(got.body, tt.part) {
				t.Errorf("%d %s, want %d with %s", got.status, got.body, tt.status, tt.part)
			}
		})
	}
}

// TestResume breaks the connection of a call before its answer, and resumes its stream.
func TestResume(t *testing.T) {
	e, _, goOn := held(echo)
	s := open(t, e, nil, nil)
	h := s.initialize(nil)
	v := s.stream(http.MethodPost, codex("5", "hello", ""), h)
	first := v.next()
	at := v.lastID
	second := v.until("task_started")
	v.close()
	// The call continues, although no client reads its stream.
	close(goOn)
	h["Last-Event-ID"] = at
	again := s.stream(http.MethodGet, "", h)
	for _, want := range []string{"task_started", "heard hello", `"result"`} {
		if got := again.until(want); got == first {
			t.Errorf("%s was sent again", first)
		} else if want == "task_started" && got != second {
			t.Errorf("%s, and before %s", got, second)
		}
	}
	if rest := again.next(); rest != "" {
		t.Errorf("after the answer: %s", rest)
	}
}

// TestSessionLimit checks that a further session ends the one that was idle for longest, and
// never one in use.
func TestSessionLimit(t *testing.T) {
	e, began, _ := stuck()
	s := open(t, e, nil, func(o *mcphttp.Options) { o.MaxSessions = 2 })
	busy, idle := s.initialize(nil), s.initialize(nil)
	s.stream(http.MethodPost, codex("1", "work", ""), busy)
	wait(t, began)
	third := s.initialize(nil)
	ping := `{"jsonrpc":"2.0","id":9,"method":"ping"}`
	for _, tt := range []struct {
		h      headers
		status int
	}{{busy, 200}, {idle, 404}, {third, 200}} {
		if got := s.post(ping, tt.h); got.status != tt.status {
			t.Errorf("%+v, want %d", got, tt.status)
		}
	}
	s.stream(http.MethodPost, codex("1", "work", ""), third)
	wait(t, began)
	if got := s.post(hello, nil); got.status != 429 {
		t.Errorf("one more: %+v", got)
	}
}

// TestCancelledRequestEndsItsStream cancels a request by a notification.
func TestCancelledRequestEndsItsStream(t *testing.T) {
	e, began, ended := stuck()
	s := open(t, e, nil, nil)
	h := s.initialize(nil)
	v := s.stream(http.MethodPost, codex("1", "work", ""), h)
	wait(t, began)
	if got := s.post(codex("1", "again", ""), h); got.status != 400 || !strings.Contains(got.body, "in use") {
		t.Errorf("the same id: %+v", got)
	}
	s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, h)
	wait(t, ended)
	for data := v.next(); data != ""; data = v.next() {
		if strings.Contains(data, `"result"`) {
			t.Errorf("a cancelled request was answered: %s", data)
		}
	}
}

// TestDrain checks that running work ends, that answers to its questions are accepted, and that
// new work is refused.
func TestDrain(t *testing.T) {
	s := open(t, asking, nil, nil)
	h := s.initialize(nil)
	v := s.stream(http.MethodPost, codex("1", "work", ""), h)
	v.until(`"elicitation/create"`)
	drained := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	go func() { drained <- s.handler.Drain(ctx) }()
	s.soon("new requests are refused", func() bool { return s.post(`{"jsonrpc":"2.0","id":2,"method":"ping"}`, h).status == 503 })
	body, mh := modern("3", "server/discover", "{}", "")
	if got := s.post(body, mh); got.status != 503 {
		t.Errorf("a request of today: %+v", got)
	}
	if got := s.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, nil); got.status != 503 {
		t.Errorf("a new session: %+v", got)
	}
	if got := s.post(`{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"decision":"approved"}}}`, h); got.status != 202 {
		t.Errorf("the answer: %+v", got)
	}
	v.until("decided approved")
	must(t, wait(t, drained))
}
