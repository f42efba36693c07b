package appserver_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	gocmp "github.com/google/go-cmp/cmp"
)

var readOnly = protocol.Config{Sandbox: protocol.SandboxReadOnly, ApprovalPolicy: protocol.ApprovalNever, ReadOnly: true}

func review(t *testing.T, c engine.Conversation, r protocol.Review) error {
	t.Helper()
	return c.Turn(t.Context(), protocol.TurnInput{Items: protocol.TextInput("p"), Review: &r})
}

// critic is a fake app-server whose turns answer with findings.
type critic struct {
	*fake

	mu       sync.Mutex
	threads  []string // of thread/start
	params   []string // of turn/start
	injected string
	deleted  chan string
}

const findings = `{"findings":[]}`

func newCritic(t *testing.T) *critic {
	c := &critic{fake: newFake(t), deleted: make(chan string, 1)}
	c.on["thread/start"] = func(_ *run, r *jsonrpc.Request) (any, error) {
		var p struct{ Sandbox, ApprovalPolicy string }
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.threads = append(c.threads, string(r.Params))
		id := fmt.Sprintf("0199a2b3-0000-7000-8000-%012d", len(c.threads))
		kind := map[string]string{"read-only": "readOnly", "workspace-write": "workspaceWrite", "": "dangerFullAccess"}[p.Sandbox]
		return map[string]any{
			"thread": map[string]any{"id": id, "path": filepath.Join(c.home, id+".jsonl"), "turns": []any{}}, "model": "m", "modelProvider": "mock", "cwd": "/work",
			"approvalPolicy": cmp.Or(p.ApprovalPolicy, "on-request"), "approvalsReviewer": "user", "sandbox": map[string]any{"type": kind},
		}, nil
	}
	c.on["turn/start"] = func(x *run, r *jsonrpc.Request) (any, error) {
		var p struct{ ThreadID string }
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.params = append(c.params, string(r.Params))
		turn := fmt.Sprintf("turn-%d", len(c.params))
		c.mu.Unlock()
		if c.turn != nil {
			go c.turn(x)
		} else {
			go c.finish(x, p.ThreadID, turn)
		}
		return json.RawMessage(fmt.Sprintf(`{"turn":{"id":%q,"status":"inProgress","items":[]}}`, turn)), nil
	}
	c.on["thread/inject_items"] = func(_ *run, r *jsonrpc.Request) (any, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.injected += string(r.Params)
		return struct{}{}, nil
	}
	c.on["thread/delete"] = func(_ *run, r *jsonrpc.Request) (any, error) {
		c.deleted <- string(r.Params)
		return struct{}{}, nil
	}
	return c
}

// finish sends the answer and the end of a turn.
func (c *critic) finish(x *run, thread, turn string) {
	x.notify("turn/started", `{"threadId":%q,"turn":{"id":%q,"status":"inProgress","items":[]}}`, thread, turn)
	x.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":{"type":"agentMessage","id":"m","text":%q}}`, thread, turn, findings)
	x.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"completed","items":[],"error":null}}`, thread, turn)
}

// TestReview checks that Codex gets the task in a turn of a thread that can only read, and that
// no later turn can do more.
func TestReview(t *testing.T) {
	c := newCritic(t)
	c.config = json.RawMessage(`{"mcp_servers":{"evil":{"command":"touch"},"more":{"url":"http://x"}}}`)
	h := &recorder{}
	conv, err := c.engine(appserver.Options{}).Start(t.Context(), readOnly, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := review(t, conv, protocol.Review{Target: protocol.ReviewCommit, Revision: "abc", Instructions: "i"}); err != nil || h.answer() != findings {
		t.Fatalf("%v, %s", err, h.answer())
	}
	want := []string{fmt.Sprintf(`{"approvalPolicy":"never","input":[{"text":"p","type":"text"}],"sandboxPolicy":{"networkAccess":false,"type":"readOnly"},"threadId":%q}`, conv.ID())}
	if d := gocmp.Diff(want, c.params); d != "" {
		t.Errorf("turn/start (-want +got)\n%s", d)
	}
	for _, part := range []string{`"sandbox":"read-only"`, `"approvalPolicy":"never"`, `"mcp_servers.evil.enabled":false`, `"mcp_servers.more.enabled":false`, `"web_search":"disabled"`} {
		if !strings.Contains(c.threads[0], part) {
			t.Errorf("thread/start lacks %s: %s", part, c.threads[0])
		}
	}
	if len(c.threads) != 1 || c.injected != "" || len(c.deleted) > 0 {
		t.Errorf("threads %q, injected %s", c.threads, c.injected)
	}
}

// TestReviewNeedsReadOnly fails if Codex would not run the review read-only.
func TestReviewNeedsReadOnly(t *testing.T) {
	for name, tt := range map[string][2]string{ // the policy and the sandbox
		"sandbox": {`"never"`, `{"type":"workspaceWrite"}`},
		"network": {`"never"`, `{"type":"readOnly","networkAccess":true}`},
		"policy":  {`"on-request"`, `{"type":"readOnly"}`},
		"rules":   {`{"granular":{}}`, `{"type":"readOnly"}`},
	} {
		f := newFake(t)
		f.policy, f.sandbox = tt[0], tt[1]
		if _, err := f.engine(appserver.Options{}).Start(t.Context(), readOnly, &recorder{}); err == nil || !strings.Contains(err.Error(), "no review: codex would not run it read-only") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReviewInThread reviews in a conversation that is not read-only, by another thread.
func TestReviewInThread(t *testing.T) {
	c := newCritic(t)
	h := &recorder{}
	conv, err := c.engine(appserver.Options{}).Start(t.Context(), protocol.Config{}, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := review(t, conv, protocol.Review{Target: protocol.ReviewUncommitted}); err != nil || h.answer() != findings {
		t.Fatalf("%v, %s", err, h.answer())
	}
	const other = "0199a2b3-0000-7000-8000-000000000002"
	if len(c.threads) != 2 || !strings.Contains(c.threads[1], `"sandbox":"read-only"`) || !strings.Contains(c.threads[1], `"approvalPolicy":"never"`) || strings.Contains(c.threads[0], "never") {
		t.Errorf("threads %q", c.threads)
	}
	if d := gocmp.Diff([]string{fmt.Sprintf(`{"approvalPolicy":"never","input":[{"text":"p","type":"text"}],"sandboxPolicy":{"networkAccess":false,"type":"readOnly"},"threadId":%q}`, other)}, c.params); d != "" {
		t.Errorf("turn/start (-want +got)\n%s", d)
	}
	if !strings.Contains(c.injected, conv.ID()) || !strings.Contains(c.injected, "What it found:\\n\\n{") {
		t.Errorf("injected %s", c.injected)
	}
	if got, want := <-c.deleted, fmt.Sprintf(`{"threadId":%q}`, other); got != want {
		t.Errorf("deleted %s, want %s", got, want)
	}
	if n := h.count("session_configured"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// TestReviewInterrupt interrupts a review in another thread, which is deleted.
func TestReviewInterrupt(t *testing.T) {
	const other = "0199a2b3-0000-7000-8000-000000000002"
	c := newCritic(t)
	began := make(chan struct{})
	c.turn = func(x *run) {
		x.notify("turn/started", `{"threadId":%q,"turn":{"id":%q,"status":"inProgress","items":[]}}`, other, turnID)
		close(began)
	}
	var cut string
	c.on["turn/interrupt"] = func(x *run, r *jsonrpc.Request) (any, error) {
		cut = string(r.Params)
		x.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"interrupted","items":[],"error":null}}`, other, turnID)
		return struct{}{}, nil
	}
	h := &recorder{}
	conv, err := c.engine(appserver.Options{}).Start(t.Context(), protocol.Config{}, h)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() { <-began; cancel(enough) }()
	if err := conv.Turn(ctx, protocol.TurnInput{Items: protocol.TextInput("p"), Review: &protocol.Review{Target: protocol.ReviewUncommitted}}); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	if h.count("turn_aborted") != 1 || h.answer() != "" || c.injected != "" {
		t.Errorf("events %v, injected %s", h.types(), c.injected)
	}
	if got, want := <-c.deleted, fmt.Sprintf(`{"threadId":%q}`, other); got != want || !strings.Contains(cut, other) {
		t.Errorf("deleted %s, interrupted %s", got, cut)
	}
}
