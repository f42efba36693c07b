package mcphttp_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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

// TestThreadsAreShownToTheirPrincipal reads a thread as its own principal and as another one.
// It does so in both eras, while the thread is open and when only its rollout exists.
func TestThreadsAreShownToTheirPrincipal(t *testing.T) {
	const id = "00000000-0000-7000-8000-000000000001"
	path := filepath.Join(t.TempDir(), "rollout-2025-01-01T00-00-00-"+id+".jsonl")
	rollout := `{"timestamp":"2025-01-01T00:00:00Z","type":"session_meta","payload":{"id":"` + id + `","cwd":"/","timestamp":"2025-01-01T00:00:00Z"}}` + "\n" +
		`{"timestamp":"2025-01-01T00:00:00Z","type":"event_msg","payload":{"type":"user_message","message":"hello"}}` + "\n"
	if err := os.WriteFile(path, []byte(rollout), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, archive{echo, path}, nil, nil)
	body, h := modern("1", "tools/call", "{}", call)
	today := found(t, s.post(body, h).body, "threadId")
	session := s.initialize(nil)
	before := found(t, s.post(codex("1", "hello", ""), session).body, "threadId")
	const theirs = "Bearer bob"
	bobs := s.initialize(headers{"Authorization": theirs})
	for thread, open := range map[string]bool{today: true, before: true, id: false} {
		params := `"name":"codex-show","arguments":{"threadId":"` + thread + `","what":"transcript"}`
		body, h := modern("2", "tools/call", "{}", params)
		h["Mcp-Name"] = "codex-show"
		old := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{%s}}`, params)
		own := map[string]reply{}
		if open && thread == today {
			own["a request of today"] = s.post(body, h)
		}
		if open && thread == before {
			own["a session"] = s.post(old, session)
		}
		for name, got := range own {
			if !strings.Contains(got.body, "hello") {
				t.Errorf("its own by %s: %+v", name, got)
			}
		}
		h["Authorization"] = theirs
		for name, got := range map[string]reply{"a request of today": s.post(body, h), "a session": s.post(old, bobs)} {
			if strings.Contains(got.body, "hello") || !strings.Contains(got.body, "no conversation") {
				t.Errorf("a stranger by %s: %+v", name, got)
			}
		}
	}
}

// TestWaitNamesItsThreads checks that codex-wait of 2026-07-28 does not wait for the turns of
// other clients.
func TestWaitNamesItsThreads(t *testing.T) {
	s := open(t, echo, nil, nil)
	body, h := modern("1", "tools/call", "{}", `"name":"codex","arguments":{"prompt":"secret","background":true}`)
	thread := found(t, s.post(body, h).body, "threadId")
	h["Mcp-Name"] = "codex-wait"
	for arguments, want := range map[string]string{
		`{}`:                 "argument /threadIds is missing",
		`{"threadIds":null}`: "argument /threadIds is missing",
		`{"threadIds":[]}`:   `"threads":[]`,
	} {
		body, _ := modern("2", "tools/call", "{}", `"name":"codex-wait","arguments":`+arguments)
		if got := s.post(body, h); strings.Contains(got.body, "secret") || !strings.Contains(got.body, want) {
			t.Errorf("%s: %+v", arguments, got)
		}
	}
	body, _ = modern("3", "tools/call", "{}", `"name":"codex-wait","arguments":{"threadIds":["`+thread+`"]}`)
	if got := s.post(body, h); !strings.Contains(got.body, "heard secret") {
		t.Errorf("its own: %+v", got)
	}
	// A session has its own turns, and waits only for those.
	session := s.initialize(nil)
	wait := `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"codex-wait","arguments":{}}}`
	if got := s.post(wait, session); strings.Contains(got.body, "secret") || !strings.Contains(got.body, "Nothing runs") {
		t.Errorf("in a session: %+v", got)
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
