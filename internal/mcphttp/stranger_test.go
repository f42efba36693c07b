package mcphttp_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
)

// archive is an engine that has a rollout of every thread.
type archive struct {
	engine.Engine
	path string
}

// Find implements [engine.Resumer].
func (e archive) Find(_ context.Context, id string) (engine.Saved, error) {
	return engine.Saved{ID: id, File: e.path}, nil
}

// Resume implements [engine.Resumer].
func (e archive) Resume(ctx context.Context, _ engine.Saved, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	return e.Start(ctx, cfg, host)
}

// TestSavedThreadsAreNotShown reads a thread of which only the rollout exists, in both eras: it may be another
// principal's.
func TestSavedThreadsAreNotShown(t *testing.T) {
	const id = "00000000-0000-7000-8000-000000000001"
	path := filepath.Join(t.TempDir(), "rollout-2025-01-01T00-00-00-"+id+".jsonl")
	rollout := `{"timestamp":"2025-01-01T00:00:00Z","type":"session_meta","payload":{"id":"` + id + `","cwd":"/","timestamp":"2025-01-01T00:00:00Z"}}` + "\n" +
		`{"timestamp":"2025-01-01T00:00:00Z","type":"event_msg","payload":{"type":"user_message","message":"hello"}}` + "\n"
	must(t, os.WriteFile(path, []byte(rollout), 0o600))
	s := open(t, archive{echo, path}, nil, nil)
	params := `"name":"codex-show","arguments":{"threadId":"` + id + `","what":"transcript"}`
	body, h := modern("2", "tools/call", "{}", params)
	h["Mcp-Name"] = "codex-show"
	for _, got := range []reply{s.post(body, h), s.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+params+`}}`, s.initialize(nil))} {
		if strings.Contains(got.body, "hello") || !strings.Contains(got.body, "no conversation") {
			t.Errorf("%+v", got)
		}
	}
}

// TestEventsBelongToTheirSession tries to resume a stream of another session.
func TestEventsBelongToTheirSession(t *testing.T) {
	e, began, _ := stuck()
	s := open(t, e, nil, nil)
	ann := s.initialize(nil)
	v := s.stream(http.MethodPost, codex("1", "secret", ""), ann)
	wait(t, began)
	v.until("task_started")
	for _, h := range []headers{s.initialize(nil), s.initialize(headers{"Authorization": "Bearer bob"})} {
		h["Last-Event-ID"] = v.lastID
		if got := s.do(http.MethodGet, "", h); got.status != 400 || !strings.Contains(got.body, "not kept") {
			t.Errorf("%+v", got)
		}
	}
}

// TestSessionIDsAreTheServers checks that a client cannot choose a session id.
func TestSessionIDsAreTheServers(t *testing.T) {
	s := open(t, echo, nil, nil)
	if got := s.post(hello, headers{"Mcp-Session-Id": "chosen"}); got.status != 404 || got.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("%+v", got)
	}
	if a, b := s.initialize(nil)["Mcp-Session-Id"], s.initialize(nil)["Mcp-Session-Id"]; a == b || len(a) < 43 {
		t.Errorf("sessions %q and %q", a, b)
	}
}

const (
	asks  = `{"elicitation":{}}`
	tasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

// TestStrangersWork has a principal try to use the open work of another one, of both eras, in every way. It does not
// exist for that one, and its questions stay open.
func TestStrangersWork(t *testing.T) {
	s := open(t, asking, &codexserver.Options{Home: testenv.Home(t), Tasks: codexserver.TaskOptions{Grace: -1}}, nil)
	today := func(who, method, name, capabilities, params string) string {
		body, h := modern("1", method, capabilities, params)
		h["Authorization"], h["Mcp-Name"] = "Bearer "+who, name
		return s.post(body, h).body
	}
	const work = `"name":"codex","arguments":{"prompt":"go"`
	session, stranger := s.initialize(nil), s.initialize(headers{"Authorization": "Bearer bob"})
	v := s.stream(http.MethodPost, codex("1", "go", ""), session)
	v.until(`"elicitation/create"`)
	back := s.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+work+`,"background":true}}}`, session).body
	state := found(t, today("ann", "tools/call", "codex", asks, work+`}`), "requestState")
	id := found(t, today("ann", "tools/call", "codex", tasks, work+`}`), "taskId")
	later := today("ann", "tools/call", "codex", asks, work+`,"background":true}`)

	stolen := headers{"Mcp-Session-Id": session["Mcp-Session-Id"], "Authorization": "Bearer bob"}
	for method, body := range map[string]string{http.MethodPost: `{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`, http.MethodGet: "", http.MethodDelete: ""} {
		if got := s.do(method, body, stolen); got.status != http.StatusNotFound {
			t.Errorf("%s in the session: %+v", method, got)
		}
	}
	const yes = `"inputResponses":{"q1":{"action":"accept"}}`
	for name, got := range map[string]string{
		"tasks/get":    today("bob", "tasks/get", id, tasks, `"taskId":"`+id+`"`),
		"tasks/update": today("bob", "tasks/update", id, tasks, `"taskId":"`+id+`",`+yes),
		"tasks/cancel": today("bob", "tasks/cancel", id, tasks, `"taskId":"`+id+`"`),
		"requestState": today("bob", "tools/call", "codex", asks, work+`},"requestState":"`+state+`",`+yes),
	} {
		if !strings.Contains(got, `"error"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, thread := range []string{found(t, back, "threadId"), found(t, later, "threadId")} {
		for _, tool := range []struct{ name, arguments, unknown string }{
			{"codex-wait", `"threadIds":[%q],"seconds":0`, `"status":"unknown"`},
			{"codex-reply", `"threadId":%q,"prompt":"x"`, "no conversation"},
			{"codex-interrupt", `"threadId":%q`, "no conversation"},
			{"codex-show", `"threadId":%q,"what":"transcript"`, "no conversation"},
		} {
			params := fmt.Sprintf(`"name":%q,"arguments":{%s}`, tool.name, fmt.Sprintf(tool.arguments, thread))
			got := today("bob", "tools/call", tool.name, asks, params) + s.post(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{`+params+`}}`, stranger).body
			if strings.Count(got, tool.unknown) < 2 {
				t.Errorf("%s: %s", tool.name, got)
			}
		}
	}
	s.post(`{"jsonrpc":"2.0","id":0,"result":{"action":"decline"}}`, session)
	if got := v.until(`"result"`); !strings.Contains(got, "decided denied") {
		t.Errorf("the call: %s", got)
	}
}
