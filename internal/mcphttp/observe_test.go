package mcphttp_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/google/go-cmp/cmp"
)

// request is a line of the log about a request.
type request struct {
	Principal, ID, Method, Tool string
	Status                      int
}

// requests is a log. It sends the lines about requests to all, and keeps every line.
type requests struct {
	all  chan request
	mu   sync.Mutex
	text string
}

// Write implements [io.Writer].
func (l *requests) Write(line []byte) (int, error) {
	var one struct {
		Msg string
		request
	}
	l.mu.Lock()
	l.text += string(line)
	l.mu.Unlock()
	if err := json.Unmarshal(line, &one); err != nil {
		return 0, err
	}
	if one.Msg == "request" {
		l.all <- one.request
	}
	return len(line), nil
}

// TestServed checks that the log has a line for each request, with no content of it, and that neither it nor an answer has
// a token or the id of a session.
func TestServed(t *testing.T) {
	log := &requests{all: make(chan request, 2)}
	site := open(t, engine.TurnFunc(nil), nil, func(o *mcphttp.Options) {
		o.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	session := site.initialize(nil)
	wait(t, log.all)
	body, h := modern("7", "tools/call", "{}", `"name":"codex-wait","arguments":{"threadIds":["a-prompt"]}`)
	h["Mcp-Name"] = "codex-wait"
	strange, strangeHeaders := modern("8", "a-method", "{}", "")
	strange = strings.Replace(strange, `"id":8`, `"id":"an id with words"`, 1)
	for _, tt := range []struct {
		name, method, body string
		headers            headers
		want               request
	}{
		{"a call", "POST", body, h, request{Principal: "ann", ID: "7", Method: "tools/call", Tool: "codex-wait", Status: 200}},
		{"in a session", "POST", ping, session, request{Principal: "ann", ID: "1", Method: "ping", Status: 200}},
		{"no token", "POST", body, headers{"Authorization": "Bearer a-secret"}, request{Method: "POST", Status: 401}},
		{"no JSON", "POST", "a-prompt", nil, request{Principal: "ann", Status: 400}},
		{"an unknown method", "POST", strange, strangeHeaders, request{Principal: "ann", ID: "invalid", Method: "a-method", Status: 404}},
		{"an unknown session", "GET", "", headers{"Mcp-Session-Id": "a-session"}, request{Principal: "ann", Method: "GET", Status: 404}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := site.do(tt.method, tt.body, tt.headers)
			if text := fmt.Sprint(got.header, got.body); strings.Contains(text, "a-secret") || strings.Contains(text, "a-session") || strings.Contains(text, session["Mcp-Session-Id"]) {
				t.Errorf("the answer: %s", text)
			}
			if diff := cmp.Diff(tt.want, wait(t, log.all)); diff != "" {
				t.Errorf("logged (-want +got):\n%s", diff)
			}
		})
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, secret := range []string{"a-prompt", "a-secret", "a-session", "Bearer", session["Mcp-Session-Id"], "with words"} {
		if strings.Contains(log.text, secret) {
			t.Errorf("the log has %q: %s", secret, log.text)
		}
	}
}

// TestLoad checks the numbers of open requests and sessions.
func TestLoad(t *testing.T) {
	e, began, _ := stuck()
	site := open(t, e, nil, nil)
	session := site.initialize(nil)
	stream := site.stream(http.MethodPost, codex("2", "work", ""), session)
	wait(t, began)
	if got, want := site.handler.Load(), (mcphttp.Load{Requests: 1, Sessions: 1, Busy: true}); got != want {
		t.Errorf("load %+v, want %+v", got, want)
	}
	stream.close()
}
