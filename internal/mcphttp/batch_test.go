package mcphttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// TestBatch sends a batch with a question, and answers in another one.
func TestBatch(t *testing.T) {
	s := open(t, asking, nil, nil)
	h := s.initializeAs("2025-03-26", nil)
	if got := s.post(`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, h); got.status != 202 || got.body != "" {
		t.Errorf("notifications only: %+v", got)
	}
	v := s.stream(http.MethodPost, `[{"jsonrpc":"2.0","id":1,"method":"tools/list"},`+codex(`"a"`, "go", `"progressToken":"tok"`)+`,{"jsonrpc":"2.0","id":3,"method":"no/such"}]`, h)
	var first []string
	for question := ""; question == "" || len(first) < 2; { // they come in any order
		switch data := v.next(); {
		case strings.Contains(data, `"elicitation/create"`):
			question = data
		case strings.Contains(data, `"tools":`):
			first = append(first, "list")
		case strings.Contains(data, `-32601`):
			first = append(first, "none")
		case data == "":
			t.Fatalf("the stream ended without a question, or with the answers %v", first)
		}
	}
	answer := `{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"decision":"approved"}}}`
	ping := s.post("["+answer+`,{"jsonrpc":"2.0","id":4,"method":"ping"}]`, h)
	if ping.status != 200 || !strings.Contains(ping.body, `"id":4`) {
		t.Errorf("a batch with an answer: %+v", ping)
	}
	if got := v.until(`"result"`); !strings.Contains(got, "decided approved") || !strings.Contains(got, `"id":"a"`) {
		t.Errorf("%s", got)
	}
	slices.Sort(first)
	if rest := v.next(); rest != "" || fmt.Sprint(first) != "[list none]" {
		t.Errorf("answers %v, then %q", first, rest)
	}
	// The ids are free again.
	if got := s.post(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, h); got.status != 200 || !strings.Contains(got.body, `"result":{}`) {
		t.Errorf("%+v", got)
	}
	if got := s.do(http.MethodDelete, "", h); got.status != 204 {
		t.Errorf("DELETE: %+v", got)
	}
}

// TestBatchCancel cancels the call of a batch. The stream ends with the other answers.
func TestBatchCancel(t *testing.T) {
	s := open(t, asking, nil, nil)
	h := s.initializeAs("2025-03-26", nil)
	v := s.stream(http.MethodPost, "["+codex(`"a"`, "go", "")+`,{"jsonrpc":"2.0","id":3,"method":"ping"}]`, h)
	v.until(`"elicitation/create"`)
	if got := s.post(`[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}]`, h); got.status != 202 {
		t.Errorf("%+v", got)
	}
	for data := v.next(); data != ""; data = v.next() {
		if strings.Contains(data, `"id":"a"`) {
			t.Errorf("answered: %s", data)
		}
	}
}

// TestBatchRefusals sends batches of which nothing may be handled.
func TestBatchRefusals(t *testing.T) {
	var scopes []mcphttp.Scope
	s := open(t, echo, nil, func(o *mcphttp.Options) {
		o.Authenticate = func(r *http.Request) (mcphttp.Principal, error) {
			if r.Header.Get("Authorization") == "" {
				return mcphttp.Principal{}, errors.New("no token")
			}
			return mcphttp.Principal{Name: "ann", Scopes: scopes}, nil
		}
	})
	old, today := s.initializeAs("2025-03-26", nil), s.initializeAs("2025-06-18", nil)
	const (
		level  = `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}`
		modern = `{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	)
	for _, tt := range []struct {
		name, body string
		h          headers
		scopes     []mcphttp.Scope
		status     int
		part       string
	}{
		{"another version", "[" + ping + "]", today, nil, 400, "batches are not accepted"},
		{"no session", "[" + ping + "]", nil, nil, 400, "batches are not accepted"},
		{"a session that does not exist", "[" + ping + "]", headers{"Mcp-Session-Id": "guess"}, nil, 400, "batches are not accepted"},
		{"empty", "[ ]", old, nil, 400, "-32600"},
		{"too many", "[" + strings.Repeat(ping+",", 256) + ping + "]", old, nil, 400, "-32600"},
		{"in a batch", "[[" + ping + "]]", old, nil, 400, "batches are not accepted"},
		{"one is a number", "[" + level + ",5]", old, nil, 400, "a message is an object"},
		{"one is of 2026-07-28", "[" + level + "," + modern + "]", old, nil, 400, "batches are not accepted"},
		{"an id twice", "[" + level + "," + ping + "," + ping + "]", old, nil, 400, "id 1 is already in use"},
		{"not JSON", "[" + ping + ",]", old, nil, 400, "-32700"},
		{"not allowed", "[" + ping + "," + codex("9", "go", "") + "]", old, []mcphttp.Scope{mcphttp.ScopeRead}, 403, "codex:run"},
		{"an answer that is not allowed", "[" + ping + `,{"jsonrpc":"2.0","id":0,"result":{}}]`, old, []mcphttp.Scope{mcphttp.ScopeRead, mcphttp.ScopeRun}, 403, "codex:approve"},
		{"works", "[" + ping + "," + level + "]", old, nil, 200, `"id":2`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			scopes = tt.scopes
			if got := s.post(tt.body, tt.h); got.status != tt.status || !strings.Contains(got.body, tt.part) {
				t.Errorf("%d %s, want %d with %s", got.status, got.body, tt.status, tt.part)
			}
		})
	}
}
