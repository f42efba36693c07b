package appserver_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	threadID = "0199a2b3-0000-7000-8000-000000000001"
	turnID   = "turn-1"
	agentID  = "0199a2b3-0000-7000-8000-00000000000a"
)

// newestVersion is the newest version that is tested.
const newestVersion = "0.171.0"

// fake is an app-server whose answers a test sets. Each connection is a run, like a process.
type fake struct {
	t *testing.T
	// version is the version in its user agent.
	version string
	home    string
	// config and layers are its configuration; rollout, status, cwd, policy and sandbox what it says of its threads.
	config, layers                        any
	rollout, status, cwd, policy, sandbox string
	// thread is the id of the threads that begin, by default threadID.
	thread string
	// on has functions that answer methods. If one returns nil, the fake answers.
	on map[string]handler
	// turn plays a turn, in a goroutine of its own.
	turn func(*run)

	mu    sync.Mutex
	calls []string
	runs  []*run
}

type handler = func(*run, *jsonrpc.Request) (any, error)

// reply answers with a value, or with a text as JSON.
func reply(v any) handler {
	if text, ok := v.(string); ok {
		v = json.RawMessage(text)
	}
	return func(*run, *jsonrpc.Request) (any, error) { return v, nil }
}

func refusal(text string) handler {
	return func(*run, *jsonrpc.Request) (any, error) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", text)
	}
}

func never(r *run, _ *jsonrpc.Request) (any, error) {
	<-r.ctx.Done()
	return nil, r.ctx.Err()
}

// keep records the parameters of methods.
func (f *fake) keep(methods ...string) *[]string {
	sent := &[]string{}
	for _, method := range methods {
		f.on[method] = func(_ *run, req *jsonrpc.Request) (any, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			*sent = append(*sent, goalsOff.Replace(string(req.Params)))
			return nil, nil
		}
	}
	return sent
}

// goalsOff takes away what each thread is started with: TestGoalsAreOff has it.
var goalsOff = strings.NewReplacer(`"config":{"features.goals":false},`, "", `"features.goals":false,`, "", `,"features.goals":false`, "")

// run is one connection to the fake.
type run struct {
	*fake
	peer   *jsonrpc.Peer
	turns  int
	over   bool // the turn that was asked for last
	wire   jsonrpc.Transport
	n      int // which run this is, from 1
	cancel context.CancelFunc
	ctx    context.Context
}

func newFake(t *testing.T) *fake {
	return &fake{t: t, version: newestVersion, home: t.TempDir(), on: map[string]handler{}}
}

// bubble runs a test with a fake, in false time.
func bubble(t *testing.T, play func(*testing.T, *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { play(t, newFake(t)) })
}

// inBubble is bubble for a subtest.
func inBubble(t *testing.T, name string, play func(*testing.T, *fake)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, play) })
}

// begin runs a turn, and returns the channel that gets how it ends.
func begin(ctx context.Context, c engine.Conversation, in protocol.TurnInput) chan error {
	end := make(chan error, 1)
	go func() { end <- c.Turn(ctx, in) }()
	return end
}

func (f *fake) engine(o appserver.Options) *appserver.Engine {
	f.t.Helper()
	e, err := appserver.New(&o)
	if err != nil {
		f.t.Fatal(err)
	}
	e.Dial(f.dial)
	f.t.Cleanup(func() { e.Close() })
	return e
}

func (f *fake) dial(context.Context) (jsonrpc.Transport, error) {
	ours, theirs := jsonrpc.Pipe()
	f.mu.Lock()
	r := &run{fake: f, wire: theirs, n: len(f.runs) + 1}
	f.runs = append(f.runs, r)
	f.mu.Unlock()
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.peer = jsonrpc.NewPeer(theirs, jsonrpc.HandlerFunc(r.serve), &jsonrpc.Options{OmitVersion: true})
	done := make(chan struct{})
	go func() { defer close(done); _ = r.peer.Run(r.ctx); r.cancel() }()
	f.t.Cleanup(func() { r.cancel(); <-done })
	return ours, nil
}

func (f *fake) methods() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func (r *run) serve(_ context.Context, req *jsonrpc.Request) (any, error) {
	r.mu.Lock()
	r.calls = append(r.calls, req.Method)
	answer, turn := r.on[req.Method], r.fake.turn
	r.mu.Unlock()
	if answer != nil {
		if v, err := answer(r, req); v != nil || err != nil {
			return v, err
		}
	}
	switch req.Method {
	case "initialize":
		return map[string]any{"userAgent": "codex_mcp/" + r.version + " (Test; x86_64) unknown (codex_mcp; dev)", "codexHome": r.home}, nil
	case "account/read":
		return map[string]any{"account": nil, "requiresOpenaiAuth": false}, nil
	case "config/read":
		if r.config != nil {
			return map[string]any{"config": r.config, "layers": r.layers}, nil
		}
		return map[string]any{"config": map[string]any{"model": "m"}}, nil
	case "thread/start", "thread/resume":
		return json.RawMessage(fmt.Sprintf(`{"thread":{"id":%q,"path":%q,"turns":[],"status":{"type":%q}},"model":"m","modelProvider":"mock",
			"cwd":%q,"approvalPolicy":%s,"approvalsReviewer":"user","sandbox":%s,"reasoningEffort":null}`,
			r.begun(), cmp.Or(r.rollout, "/rollout.jsonl"), cmp.Or(r.status, "idle"), cmp.Or(r.cwd, "/work"), cmp.Or(r.policy, `"on-request"`), cmp.Or(r.sandbox, `{"type":"readOnly"}`))), nil
	case "turn/start":
		r.mu.Lock()
		r.turns++
		r.over = false
		r.mu.Unlock()
		r.notify("turn/started", `{"threadId":%q,"turn":{"id":%q,"status":"inProgress","items":[]}}`, r.begun(), r.current())
		if turn != nil {
			go turn(r)
		}
		return json.RawMessage(fmt.Sprintf(`{"turn":{"id":%q,"status":"inProgress","items":[]}}`, r.current())), nil
	case "turn/steer":
		return r.steer(req.Params)
	case "thread/backgroundTerminals/clean", "thread/inject_items":
		return struct{}{}, nil
	case "turn/interrupt":
		return r.interrupt(req.Params)
	case "model/list":
		return json.RawMessage(`{"data":[]}`), nil
	case "initialized":
		return nil, nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: unknown variant `%s`", req.Method)
}

func (r *run) begun() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.thread, threadID)
}

// current returns the id of the last turn. That of the first is turnID.
func (r *run) current() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("turn-%d", r.turns)
}

// steer takes a message for the running turn.
func (r *run) steer(params json.RawMessage) (any, error) {
	var p struct {
		ExpectedTurnID string            `json:"expectedTurnId"`
		Input          []json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: %v", err)
	}
	r.mu.Lock()
	over := r.over
	r.mu.Unlock()
	switch {
	case over:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "no active turn to steer")
	case p.ExpectedTurnID != r.current():
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "expected active turn id `%s` but found `%s`", p.ExpectedTurnID, r.current())
	case len(p.Input) == 0:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "input must not be empty")
	}
	return map[string]string{"turnId": r.current()}, nil
}

// interrupt ends a turn, of the conversation or of another thread.
func (r *run) interrupt(params json.RawMessage) (any, error) {
	var p struct {
		ThreadID string `json:"threadId"`
		TurnID   string `json:"turnId"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: %v", err)
	}
	if p.ThreadID == r.begun() && p.TurnID == r.current() {
		r.complete("interrupted")
	} else {
		r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"interrupted","items":[]}}`, p.ThreadID, p.TurnID)
	}
	return struct{}{}, nil
}

// read reports that the model reads a message of the user.
func (r *run) read(text string) {
	r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":{"type":"userMessage","id":"u","content":[{"type":"text","text":%q}]}}`, threadID, r.current(), text)
}

func (r *run) notify(method, params string, args ...any) {
	_ = r.peer.Notify(context.Background(), method, json.RawMessage(fmt.Sprintf(params, args...)))
}

func (r *run) complete(status string) {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":%q,"items":[],"error":null}}`, r.begun(), r.current(), status)
}

func (r *run) say(text string) {
	r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":{"type":"agentMessage","id":"m1","text":%q}}`, r.begun(), r.current(), text)
}

func (r *run) item(thread, turn, item string) {
	r.notify("item/started", `{"threadId":%q,"turnId":%q,"item":%s}`, thread, turn, item)
}

func (r *run) ask(method, params string, args ...any) string {
	var raw json.RawMessage
	if err := r.peer.Call(r.ctx, method, json.RawMessage(fmt.Sprintf(params, args...)), &raw); err != nil {
		return "error: " + err.Error()
	}
	return string(raw)
}

const command = `{"type":"commandExecution","id":"c1","command":"/bin/sh -c 'rm x'","cwd":"/work","status":"inProgress","commandActions":[]}`

func (r *run) askCommand(thread, turn string) string {
	return r.ask("item/commandExecution/requestApproval",
		`{"kind":"command","threadId":%q,"turnId":%q,"itemId":"c1","command":"/bin/sh -c 'rm x'","cwd":"/work","reason":null}`, thread, turn)
}

// recorder is a host that records events and answers by functions.
type recorder struct {
	exec     func(context.Context, approval.Command) elicit.Outcome
	patch    func(context.Context, approval.Patch) elicit.Outcome
	approve  func(context.Context, *elicit.Question) elicit.Outcome
	overrule func(context.Context, approval.Overrule) elicit.Outcome
	elicit   func(context.Context, json.RawMessage) (json.RawMessage, error)

	mu      sync.Mutex
	events  []protocol.EventMsg
	changed chan struct{}
}

func (h *recorder) Emit(m protocol.EventMsg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, m)
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

func (h *recorder) EmitAs(_ string, m protocol.EventMsg) { h.Emit(m) }

func (h *recorder) Ask(ctx context.Context, s approval.Subject) elicit.Outcome {
	if m := s.Event(); m != nil {
		h.Emit(m)
	}
	switch s := s.(type) {
	case approval.Command:
		if h.exec != nil {
			return h.exec(ctx, s)
		}
	case approval.Patch:
		if h.patch != nil {
			return h.patch(ctx, s)
		}
	case approval.Other:
		if h.approve != nil {
			return h.approve(ctx, s.Ask)
		}
	case approval.Overrule:
		if h.overrule != nil {
			return h.overrule(ctx, s)
		}
	}
	return elicit.Outcome{Decision: elicit.Denied}
}

func (h *recorder) Elicit(ctx context.Context, f *approval.Foreign) (json.RawMessage, error) {
	if h.elicit == nil {
		return nil, elicit.ErrUnsupported
	}
	params, err := f.Question().Params(elicit.Client{}, nil)
	if err != nil {
		return nil, err
	}
	result, err := h.elicit(ctx, params)
	if err != nil {
		return nil, err
	}
	return f.Read(result), nil
}

func (h *recorder) wait(t *testing.T, eventType string) protocol.EventMsg {
	t.Helper()
	for {
		h.mu.Lock()
		for _, e := range h.events {
			if e.EventType() == eventType {
				h.mu.Unlock()
				return e
			}
		}
		if h.changed == nil {
			h.changed = make(chan struct{})
		}
		next := h.changed
		h.mu.Unlock()
		select {
		case <-next:
		case <-t.Context().Done():
			t.Fatalf("no event %s", eventType)
		}
	}
}

func (h *recorder) all() []protocol.EventMsg {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]protocol.EventMsg(nil), h.events...)
}

func (h *recorder) types() []string {
	var list []string
	for _, e := range h.all() {
		list = append(list, e.EventType())
	}
	return list
}

func (h *recorder) count(eventType string) int {
	n := 0
	for _, e := range h.types() {
		if e == eventType {
			n++
		}
	}
	return n
}

// answer returns the last message of the last turn that completed.
func (h *recorder) answer() string {
	text := ""
	for _, e := range h.all() {
		if c, ok := e.(protocol.TaskComplete); ok && c.LastAgentMessage != nil {
			text = *c.LastAgentMessage
		}
	}
	return text
}

func decide(d elicit.Decision) *recorder {
	out := elicit.Outcome{Decision: d}
	return &recorder{
		exec:    func(context.Context, approval.Command) elicit.Outcome { return out },
		patch:   func(context.Context, approval.Patch) elicit.Outcome { return out },
		approve: func(context.Context, *elicit.Question) elicit.Outcome { return out },
	}
}

func text(s string) protocol.TurnInput {
	return protocol.TurnInput{Items: protocol.TextInput(s)}
}

// lines returns the events in their wire form, one a line.
func (h *recorder) lines(t *testing.T) []byte {
	t.Helper()
	var b []byte
	for _, m := range h.all() {
		line := must.Get(protocol.AppendEvent(nil, m))(t)
		value := jsontext.Value(line) // its maps have no order
		must.OK(t, value.Canonicalize())
		b = append(append(b, value...), '\n')
	}
	return b
}
