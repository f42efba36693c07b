package appserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

var readOnly = protocol.Config{Sandbox: protocol.SandboxReadOnly, ApprovalPolicy: protocol.ApprovalNever, ReadOnly: true}

func review(t *testing.T, c engine.Conversation, r protocol.Review) error {
	t.Helper()
	reviewer, ok := c.(engine.Reviewer)
	if !ok {
		t.Fatal("no reviewer")
	}
	return reviewer.Review(t.Context(), r)
}

// completed returns the message of the turn's task_complete.
func completed(h *recorder) string {
	var last string
	for _, m := range h.all() {
		if m, ok := m.(protocol.TaskComplete); ok && m.LastAgentMessage != nil {
			last = *m.LastAgentMessage
		}
	}
	return last
}

// TestReviewRecording plays a recorded review of the app-server. Its messages have only a
// text for people; the whole answer is in the rollout.
func TestReviewRecording(t *testing.T) {
	home := t.TempDir()
	local := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.ReplaceAll(b, []byte("$CODEX_HOME"), []byte(filepath.ToSlash(home)))
	}
	traffic := filepath.Join(home, "traffic")
	if err := os.WriteFile(traffic, local("testdata/review/uncommitted.ndjson"), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := readRecording(t, traffic)
	var path string
	for _, s := range steps {
		var m struct {
			Result struct{ Thread struct{ Path string } }
		}
		if _ = json.Unmarshal(s.S2C, &m); m.Result.Thread.Path != "" {
			path = m.Result.Thread.Path
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, found := range []bool{true, false} {
		if found {
			if err := os.WriteFile(path, local("testdata/review/uncommitted.rollout.jsonl"), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		h := &recorder{}
		ours, theirs := jsonrpc.Pipe()
		r := &replay{t: t, wire: theirs, ids: map[string]json.RawMessage{}}
		done := make(chan struct{})
		go func() { defer close(done); r.run(steps) }()
		e, err := appserver.New(&appserver.Options{Dial: func(context.Context) (jsonrpc.Transport, error) { return ours, nil }})
		if err != nil {
			t.Fatal(err)
		}
		c, err := e.Start(t.Context(), readOnly, h)
		if err != nil {
			t.Fatal(err)
		}
		err = review(t, c, protocol.Review{Target: protocol.ReviewUncommitted})
		e.Close()
		<-done
		const people = "One bug.\n\nReview comment:\n\n- [P1] Off by one — $CWD/a.txt:2-2\n  It loses the last."
		whole := `{"findings":[{"title":"[P1] Off by one","body":"It loses the last.","confidence_score":0.9,"priority":1,"code_location":{"absolute_file_path":"$CWD/a.txt","line_range":{"start":2,"end":2}}}],"overall_correctness":"patch is incorrect","overall_explanation":"One bug.","overall_confidence_score":0.8}`
		want := people // without the file
		if found {
			want = whole
		}
		if err != nil || completed(h) != want || !slices.Contains(h.all(), protocol.EventMsg(protocol.AgentMessage{Message: people})) {
			t.Errorf("found %v: %v, completed with %s\nevents %v", found, err, completed(h), h.types())
		}
		if n := h.count("background_event"); (n == 0) != found {
			t.Errorf("found %v: %d remarks", found, n)
		}
	}
}

// critic is a fake app-server that reviews.
type critic struct {
	*fake
	answer string // in the rollout

	mu       sync.Mutex
	threads  []string // of thread/start
	params   []string // of review/start
	injected string
	deleted  chan string
}

const reviewID = "review-turn"

func newCritic(t *testing.T) *critic {
	c := &critic{fake: newFake(t), answer: `{"findings":[]}`, deleted: make(chan string, 1)}
	read := func(r *jsonrpc.Request, into any) error { return json.Unmarshal(r.Params, into) }
	c.on["thread/start"] = func(_ *run, r *jsonrpc.Request) (any, error) {
		var p struct{ Sandbox, ApprovalPolicy string }
		if err := read(r, &p); err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.threads = append(c.threads, string(r.Params))
		id := fmt.Sprintf("0199a2b3-0000-7000-8000-%012d", len(c.threads))
		path := filepath.Join(c.home, id+".jsonl")
		line := fmt.Sprintf(`{"type":"event_msg","payload":{"type":"item_completed","turn_id":%q,"item":{"type":"ExitedReviewMode","review_output":%s}}}`+"\n", reviewID, c.answer)
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			return nil, err
		}
		kind := map[string]string{"read-only": "readOnly", "workspace-write": "workspaceWrite", "": "dangerFullAccess"}[p.Sandbox]
		if p.ApprovalPolicy == "" {
			p.ApprovalPolicy = "on-request"
		}
		return map[string]any{
			"thread": map[string]any{"id": id, "path": path, "turns": []any{}}, "model": "m", "modelProvider": "mock", "cwd": "/work",
			"approvalPolicy": p.ApprovalPolicy, "approvalsReviewer": "user", "sandbox": map[string]any{"type": kind},
		}, nil
	}
	c.on["review/start"] = func(x *run, r *jsonrpc.Request) (any, error) {
		var p struct{ ThreadID string }
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.params = append(c.params, string(r.Params))
		c.mu.Unlock()
		if c.turn != nil {
			go c.turn(x)
		} else {
			go c.finish(x, p.ThreadID, "completed")
		}
		return json.RawMessage(fmt.Sprintf(`{"turn":{"id":%q,"status":"inProgress","items":[]},"reviewThreadId":%q}`, reviewID, p.ThreadID)), nil
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

// finish sends the end of a review.
func (c *critic) finish(x *run, thread, status string) {
	item := func(method, item string) {
		x.notify(method, `{"threadId":%q,"turnId":%q,"item":%s}`, thread, reviewID, item)
	}
	item("item/started", `{"type":"enteredReviewMode","id":"e","review":"current changes"}`)
	x.notify("turn/started", `{"threadId":%q,"turn":{"id":"reviewer-turn","status":"inProgress","items":[]}}`, thread)
	item("item/completed", `{"type":"exitedReviewMode","id":"x","review":"Fine."}`)
	item("item/completed", `{"type":"agentMessage","id":"m","text":"Fine."}`)
	x.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":%q,"items":[],"error":null}}`, thread, reviewID, status)
}

func TestReviewTargets(t *testing.T) {
	for _, tt := range []struct {
		review protocol.Review
		want   string
	}{
		{protocol.Review{Target: protocol.ReviewUncommitted, Prompt: "p"}, `{"type":"uncommittedChanges"}`},
		{protocol.Review{Target: protocol.ReviewBase, Revision: "main", Prompt: "p"}, `{"branch":"main","type":"baseBranch"}`},
		{protocol.Review{Target: protocol.ReviewCommit, Revision: "abc", Prompt: "p"}, `{"sha":"abc","type":"commit"}`},
		{protocol.Review{Target: protocol.ReviewCommit, Revision: "abc", Prompt: "p", Instructions: "i"}, `{"instructions":"p","type":"custom"}`},
	} {
		c := newCritic(t)
		c.on["config/read"] = func(*run, *jsonrpc.Request) (any, error) {
			return json.RawMessage(`{"config":{"mcp_servers":{"evil":{"command":"touch"},"more":{"url":"http://x"}}}}`), nil
		}
		h := &recorder{}
		conv, err := c.engine(appserver.Options{}).Start(t.Context(), readOnly, h)
		if err != nil {
			t.Fatal(err)
		}
		if err := review(t, conv, tt.review); err != nil || completed(h) != c.answer {
			t.Fatalf("%v, %s", err, completed(h))
		}
		want := []string{fmt.Sprintf(`{"target":%s,"threadId":%q}`, tt.want, conv.ID())}
		if d := cmp.Diff(want, c.params); d != "" {
			t.Errorf("review/start (-want +got)\n%s", d)
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
}

// TestReviewNeedsReadOnly fails if Codex would not run the review read-only.
func TestReviewNeedsReadOnly(t *testing.T) {
	for name, reply := range map[string]string{
		"sandbox": `"approvalPolicy":"never","sandbox":{"type":"workspaceWrite"}`,
		"network": `"approvalPolicy":"never","sandbox":{"type":"readOnly","networkAccess":true}`,
		"policy":  `"approvalPolicy":"on-request","sandbox":{"type":"readOnly"}`,
		"rules":   `"approvalPolicy":{"granular":{}},"sandbox":{"type":"readOnly"}`,
	} {
		c := newCritic(t)
		c.on["thread/start"] = func(*run, *jsonrpc.Request) (any, error) {
			return json.RawMessage(fmt.Sprintf(`{"thread":{"id":%q,"path":"/r.jsonl","turns":[]},"model":"m","modelProvider":"mock","cwd":"/work",%s}`, threadID, reply)), nil
		}
		if _, err := c.engine(appserver.Options{}).Start(t.Context(), readOnly, &recorder{}); err == nil || !strings.Contains(err.Error(), "no review: codex would not run it read-only") {
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
	if err := review(t, conv, protocol.Review{Target: protocol.ReviewUncommitted}); err != nil || completed(h) != c.answer {
		t.Fatalf("%v, %s", err, completed(h))
	}
	const other = "0199a2b3-0000-7000-8000-000000000002"
	if len(c.threads) != 2 || !strings.Contains(c.threads[1], `"sandbox":"read-only"`) || !strings.Contains(c.threads[1], `"approvalPolicy":"never"`) || strings.Contains(c.threads[0], "sandbox") {
		t.Errorf("threads %q", c.threads)
	}
	if d := cmp.Diff([]string{fmt.Sprintf(`{"target":{"type":"uncommittedChanges"},"threadId":%q}`, other)}, c.params); d != "" {
		t.Errorf("review/start (-want +got)\n%s", d)
	}
	if !strings.Contains(c.injected, conv.ID()) || !strings.Contains(c.injected, "What it found:\\n\\nFine.") {
		t.Errorf("injected %s", c.injected)
	}
	if got, want := <-c.deleted, fmt.Sprintf(`{"threadId":%q}`, other); got != want {
		t.Errorf("deleted %s, want %s", got, want)
	}
	if n := h.count("session_configured"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// TestReviewInterrupt interrupts a review by the id that Codex expects.
func TestReviewInterrupt(t *testing.T) {
	c := newCritic(t)
	var thread string
	began := make(chan struct{})
	c.turn = func(x *run) {
		x.notify("item/started", `{"threadId":%q,"turnId":%q,"item":{"type":"enteredReviewMode","id":"e","review":"x"}}`, thread, reviewID)
		close(began)
	}
	refused := 0
	c.on["turn/interrupt"] = func(x *run, r *jsonrpc.Request) (any, error) {
		var p struct{ TurnID string }
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		if p.TurnID != "reviewer-turn" {
			if refused++; refused == 1 {
				x.notify("turn/started", `{"threadId":%q,"turn":{"id":"reviewer-turn","status":"inProgress","items":[]}}`, thread)
			}
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "expected active turn id %s but found reviewer-turn", p.TurnID)
		}
		x.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"interrupted","items":[],"error":null}}`, thread, reviewID)
		return struct{}{}, nil
	}
	h := &recorder{}
	conv, err := c.engine(appserver.Options{}).Start(t.Context(), readOnly, h)
	if err != nil {
		t.Fatal(err)
	}
	thread = conv.ID()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() { <-began; cancel(enough) }()
	reviewer := conv.(engine.Reviewer)
	if err := reviewer.Review(ctx, protocol.Review{Target: protocol.ReviewUncommitted}); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	if h.count("turn_aborted") != 1 || completed(h) != "" {
		t.Errorf("events %v", h.types())
	}
}
