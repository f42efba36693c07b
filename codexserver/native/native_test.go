package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// host records events and answers approvals.
type host struct {
	engine.DenyAll
	mu     sync.Mutex
	events []protocol.EventMsg
	// on is called for each event, after it was recorded.
	on func(protocol.EventMsg)
	// exec answers; nil refuses.
	exec  func(context.Context, approval.Command) elicit.Decision
	deny  bool // patches
	asked int  // about commands
}

func (h *host) Emit(m protocol.EventMsg) {
	h.mu.Lock()
	h.events = append(h.events, m)
	if is[protocol.ExecApprovalRequest](m) {
		h.asked++
	}
	on := h.on
	h.mu.Unlock()
	if on != nil {
		on(m)
	}
}

func (h *host) EmitAs(_ string, m protocol.EventMsg) { h.Emit(m) }

func (h *host) Ask(ctx context.Context, s approval.Subject) elicit.Outcome {
	switch s := s.(type) {
	case approval.Command:
		h.Emit(s.Event())
		if h.exec == nil {
			return elicit.Outcome{Decision: elicit.Denied}
		}
		return elicit.Outcome{Decision: h.exec(ctx, s)}
	case approval.Patch:
		h.Emit(s.Event())
		if h.deny {
			return elicit.Outcome{Decision: elicit.Denied}
		}
		return elicit.Outcome{Decision: elicit.Approved}
	}
	return h.DenyAll.Ask(ctx, s)
}

// take returns the recorded events in short form and forgets them.
func (h *host) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, m := range h.events {
		out = append(out, short(m))
	}
	h.events = nil
	return out
}

func short(m protocol.EventMsg) string {
	switch m := m.(type) {
	case protocol.AgentMessage:
		return "agent_message " + m.Message
	case protocol.AgentMessageDelta:
		return "agent_message_delta " + m.Delta
	case protocol.ExecApprovalRequest:
		return "exec_approval_request " + strings.Join(m.Command, " ")
	case protocol.ExecCommandBegin:
		return "exec_command_begin " + strings.Join(m.Command, " ")
	case protocol.ExecCommandEnd:
		return fmt.Sprintf("exec_command_end %d", m.ExitCode)
	case protocol.TaskComplete:
		if m.LastAgentMessage == nil {
			return "task_complete null"
		}
		return "task_complete " + *m.LastAgentMessage
	case protocol.TurnAborted:
		return "turn_aborted " + string(m.Reason)
	case protocol.Error:
		return "error " + m.Message
	}
	return m.EventType()
}

func always(d elicit.Decision) func(context.Context, approval.Command) elicit.Decision {
	return func(context.Context, approval.Command) elicit.Decision { return d }
}

var allow = always(elicit.Approved)

func (h *host) last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return short(h.events[len(h.events)-1])
}

// bench is an engine with a scripted provider and a folder to work in.
type bench struct {
	provider  *providertest.Server
	home, cwd string
	engine    *native.Engine
	limits    native.Limits
	store     *worker.Mirror // nil for files alone
	guarded   []string
}

// setup makes a bench. extra is TOML for config.toml; what follows "---" belongs to the provider's table.
func setup(t testing.TB, extra string, limits native.Limits, turns ...providertest.Turn) *bench {
	t.Helper()
	b := &bench{provider: providertest.New(turns...), home: t.TempDir(), cwd: t.TempDir(), limits: limits}
	t.Cleanup(b.provider.Close)
	top, tables, _ := strings.Cut(extra, "---\n")
	config := fmt.Sprintf(`model = "scripted"
model_provider = "test"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
%s
[model_providers.test]
base_url = %q
request_max_retries = 0
stream_max_retries = 0
%s`, top, b.provider.BaseURL(), tables)
	write(t, filepath.Join(b.home, "config.toml"), config)
	b.reopen(t)
	return b
}

// reopen makes another engine on the same folders, as after a restart.
func (b *bench) reopen(t testing.TB) {
	t.Helper()
	b.engine = open(t, native.Options{
		CodexHome: b.home,
		Store:     b.store,
		Limits:    b.limits,
		Guarded:   b.guarded,
		Environ:   []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "SHELL=/bin/bash"},
	})
}

// open makes an engine, which is closed after the test.
func open(t testing.TB, o native.Options) *native.Engine {
	t.Helper()
	e := must.Get(native.New(&o))(t)
	t.Cleanup(func() {
		must.Check(t, e.Close())
	})
	return e
}

func (b *bench) start(t testing.TB, h engine.Host, cfg protocol.Config) engine.Conversation {
	t.Helper()
	cfg.Cwd = b.cwd
	c := must.Get(b.engine.Start(t.Context(), cfg, h))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (b *bench) resume(t testing.TB, path string, cfg protocol.Config, h engine.Host) engine.Conversation {
	t.Helper()
	c := must.Get(b.engine.Resume(t.Context(), engine.Saved{File: path}, cfg, h))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func say(text string) protocol.TurnInput { return protocol.TurnInput{Items: protocol.TextInput(text)} }

func says(t testing.TB, c engine.Conversation, texts ...string) {
	t.Helper()
	for _, text := range texts {
		turn(t, c, say(text))
	}
}

func turn(t testing.TB, c engine.Conversation, in protocol.TurnInput) {
	t.Helper()
	must.OK(t, c.Turn(t.Context(), in))
}

func closed(t testing.TB, c engine.Conversation) {
	t.Helper()
	must.OK(t, c.Close())
}

func onEachWire(t *testing.T, test func(t *testing.T, wire string)) {
	for _, wire := range []string{"chat", "responses"} {
		t.Run(wire, func(t *testing.T) { test(t, wire) })
	}
}

// as reports whether an error is one of a type.
func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func (b *bench) absent(t testing.TB, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(b.cwd, name)); err == nil {
		t.Errorf("a command made %s", name)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	return string(b)
}

// change replaces a part of a file, which it must have.
func change(t testing.TB, path, old, replacement string) {
	t.Helper()
	text := read(t, path)
	if !strings.Contains(text, old) {
		t.Fatalf("%s lacks %q", path, old)
	}
	write(t, path, strings.Replace(text, old, replacement, 1))
}

func is[E protocol.EventMsg](m protocol.EventMsg) bool { _, ok := m.(E); return ok }

func TestMissingKey(t *testing.T) {
	b := setup(t, "---\nenv_key = \"NO_SUCH_KEY\"", native.Limits{})
	err := b.start(t, &host{}, protocol.Config{}).Turn(t.Context(), say("go"))
	if !as[*engine.TurnError](err) || !strings.HasPrefix(err.Error(), "Missing environment variable: `NO_SUCH_KEY`.") || len(b.provider.Requests()) > 0 {
		t.Errorf("Turn: %v, %d requests", err, len(b.provider.Requests()))
	}
}

func parse(t testing.TB, text []byte, into any) {
	t.Helper()
	must.OK(t, json.Unmarshal(text, into))
}

func fileOf(t testing.TB, e engine.Resumer, id string) string {
	t.Helper()
	s := must.Get(e.Find(t.Context(), id))(t)
	must.Equal(t, "found", id, s.ID)
	return s.File
}

func rawConfig(key, value string) (o protocol.Overrides) {
	if err := json.Unmarshal(fmt.Appendf(nil, "{%q:%s}", key, value), &o); err != nil {
		panic(err)
	}
	return o
}

// validRequests fails the test if a provider would refuse a request: each call must have
// one answer, directly after its response, and each answer must have a call.
func validRequests(t testing.TB, p *providertest.Server) {
	t.Helper()
	for n, r := range p.Requests() {
		if err := validHistory(r.Body); err != nil {
			t.Errorf("request %d: %v\n%s", n, err, r.Body)
		}
	}
}

func validHistory(body []byte) error {
	var req struct {
		Messages []struct {
			Role       string
			ToolCalls  []struct{ ID string } `json:"tool_calls"`
			ToolCallID string                `json:"tool_call_id"`
		}
		Input []struct {
			Type   string
			CallID string `json:"call_id"`
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return err
	}
	open := map[string]bool{}
	for i, m := range req.Messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return fmt.Errorf("message %d answers %q, which is not open", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d comes before the answers to %v", i, open)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	for i, item := range req.Input {
		switch item.Type {
		case "function_call", "custom_tool_call", "local_shell_call":
			open[item.CallID] = true
		case "function_call_output", "custom_tool_call_output":
			if !open[item.CallID] {
				return fmt.Errorf("item %d answers %q, which is not open", i, item.CallID)
			}
			delete(open, item.CallID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("no answers to %v", open)
	}
	return nil
}

// TestInterruptedCall interrupts the question about a command, and the command: only what has begun is in the history.
func TestInterruptedCall(t *testing.T) {
	for kept, at := range map[bool]func(protocol.EventMsg) bool{false: is[protocol.ExecApprovalRequest], true: is[protocol.ExecCommandBegin]} {
		b := setup(t, "", native.Limits{}, providertest.Call(providertest.Shell("c1", "sleep", "600")), providertest.Say("later"))
		ctx, cancel := context.WithCancel(t.Context())
		h := &host{exec: func(ctx context.Context, _ approval.Command) elicit.Decision {
			if ctx.Err() != nil {
				return elicit.Abort
			}
			return elicit.Approved
		}, on: func(m protocol.EventMsg) {
			if at(m) {
				cancel()
			}
		}}
		c := b.start(t, h, protocol.Config{})
		if err := c.Turn(ctx, say("first")); !as[*engine.AbortError](err) {
			t.Errorf("Turn: %v", err)
		}
		turn(t, c, say("second"))
		must.Equal(t, "the call is in the history", kept, strings.Contains(lastRequest(b), `"c1"`))
		validRequests(t, b.provider)
	}
}

func TestModelsThatMisbehave(t *testing.T) {
	calls := func(n int) providertest.Turn {
		var turn providertest.Turn
		for i := range n {
			turn.ToolCalls = append(turn.ToolCalls, providertest.Shell(fmt.Sprintf("c%d", i), "touch", "made"))
		}
		return turn
	}
	endless := strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\"more and more \"}}]}\n\n", 1<<12)
	for _, tt := range []struct {
		name   string
		limits native.Limits
		turns  []providertest.Turn
		want   string // the error's message, "" for none
	}{
		{"endless text", native.Limits{ResponseBytes: 64 << 10}, []providertest.Turn{{Body: endless}}, "the response has more than 65536 bytes"},
		{"an answer longer than any", native.Limits{}, []providertest.Turn{{Body: strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\""+strings.Repeat("x", 1<<16)+"\"}}]}\n\n", 40)}}, "the answer has more than 2097152 bytes"},
		{"endless line", native.Limits{ResponseBytes: 64 << 10}, []providertest.Turn{{Body: "data: " + strings.Repeat("x", 1<<20)}}, "the response has more than 65536 bytes"},
		{"a thousand calls at once", native.Limits{}, []providertest.Turn{calls(1000)}, "more than 128 tool calls"},
		{"a call after each call", native.Limits{ModelRequests: 5}, []providertest.Turn{
			{Repeat: true, ToolCalls: []providertest.ToolCall{providertest.Shell("", "echo", "again")}}}, "more than 5 requests"},
		{"too many tokens", native.Limits{Tokens: 100}, []providertest.Turn{
			{Repeat: true, Usage: &providertest.Usage{Total: 60}, ToolCalls: []providertest.ToolCall{providertest.Shell("", "echo", "again")}}},
			"120 of 100 tokens"},
		{"not UTF-8", native.Limits{}, []providertest.Turn{{Body: "data: {\"choices\":[{\"delta\":{\"content\":\"a\xffb\"},\"finish_reason\":\"stop\"}]}\n\n"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, "", tt.limits, tt.turns...)
			h := &host{} // refuses every command
			err := b.start(t, h, protocol.Config{}).Turn(t.Context(), say("go"))
			if tt.want == "" && err != nil {
				t.Fatal(err)
			}
			var failed *engine.TurnError
			if tt.want != "" && (!errors.As(err, &failed) || !strings.Contains(failed.Message, tt.want)) {
				t.Fatalf("Turn: %v, want %q", err, tt.want)
			}
			if !strings.HasPrefix(h.last(), "task_complete") {
				t.Errorf("the turn ends with %q", h.last())
			}
			b.absent(t, "made")
			validRequests(t, b.provider)
		})
	}
}

func TestWallTime(t *testing.T) {
	b := setup(t, "", native.Limits{WallTime: 100 * time.Millisecond}, providertest.Turn{Wait: make(chan struct{})})
	h := &host{}
	err := b.start(t, h, protocol.Config{}).Turn(t.Context(), say("go"))
	var failed *engine.TurnError
	if !errors.As(err, &failed) || !strings.Contains(failed.Message, "longer than 100ms") {
		t.Errorf("Turn: %v, want the limit", err)
	}
}

// chatGPTAuth is an auth.json with tokens that are not real.
const chatGPTAuth = `{"OPENAI_API_KEY":null,"tokens":{"id_token":"eyJhbGciOiJub25lIn0.eyJlbWFpbCI6InVzZXJAZXhhbXBsZS5jb20iLCJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9wbGFuX3R5cGUiOiJwcm8iLCJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2MifX0.c2ln","access_token":"fake-access","refresh_token":"fake-refresh","account_id":"acc"},"last_refresh":"2099-01-01T00:00:00Z"}`

// inHome makes an engine whose home has these files.
func inHome(t testing.TB, o native.Options, files map[string]string) (*native.Engine, string) {
	t.Helper()
	o.CodexHome = t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(o.CodexHome, name), text)
	}
	return open(t, o), o.CodexHome
}

// TestAuthStatus has the answers of Codex 0.42.
func TestAuthStatus(t *testing.T) {
	custom := "model_provider = \"p\"\n[model_providers.p]\nname = \"P\"\nbase_url = \"http://localhost:1/v1\"\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		token bool
		want  string
	}{
		{"no user", nil, true, `{"requiresOpenaiAuth":true}`},
		{"another provider", map[string]string{"config.toml": custom, "auth.json": chatGPTAuth}, true, `{"requiresOpenaiAuth":false}`},
		{"key", map[string]string{"auth.json": `{"OPENAI_API_KEY":"sk-fake"}`}, true, `{"authMethod":"apikey","authToken":"sk-fake","requiresOpenaiAuth":true}`},
		{"key, without includeToken", map[string]string{"auth.json": `{"OPENAI_API_KEY":"sk-fake"}`}, false, `{"authMethod":"apikey","requiresOpenaiAuth":true}`},
		{"ChatGPT", map[string]string{"auth.json": chatGPTAuth}, true, `{"authMethod":"chatgpt","authToken":"fake-access","requiresOpenaiAuth":true}`},
		{"old tokens", map[string]string{"auth.json": strings.Replace(chatGPTAuth, "2099", "2020", 1)}, true, `{"requiresOpenaiAuth":true}`},
		{"a file that cannot be read", map[string]string{"auth.json": `{nope`}, true, `{"requiresOpenaiAuth":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, _ := inHome(t, native.Options{}, tt.files)
			for _, refresh := range []bool{false, true} {
				got := must.Get(e.AuthStatus(t.Context(), protocol.GetAuthStatusParams{IncludeToken: &tt.token, RefreshToken: &refresh}))(t)
				text := must.Get(json.Marshal(got))(t)
				must.Equal(t, fmt.Sprint("refresh ", refresh), tt.want, string(text))
			}
		})
	}
}
