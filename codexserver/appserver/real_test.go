//go:build realcodex

package appserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// The tests of this file drive the real Codex that CODEX_BIN names, with a
// scripted provider on loopback:
//
//	npm i --prefix DIR @openai/codex
//	CODEX_BIN=DIR/node_modules/.bin/codex go test -tags realcodex -run '^TestReal' ./codexserver/appserver

// real is a Codex with its own home, workspace and provider.
type real struct {
	*providertest.Server
	engine    *appserver.Engine
	home, cwd string
	options   *appserver.Options
}

func newReal(t *testing.T, configuration string, turns ...providertest.Turn) *real {
	t.Helper()
	if _, err := appserver.Find(""); err != nil {
		t.Fatal(err)
	}
	r := &real{Server: providertest.New(turns...), home: t.TempDir(), cwd: t.TempDir()}
	t.Cleanup(r.Close)
	t.Setenv("HOME", t.TempDir()) // whose shell profile would run with every command
	writeFile(t, filepath.Join(r.home, "config.toml"), servertest.CodexConfig(r.BaseURL(), configuration))
	r.options = &appserver.Options{CodexHome: r.home}
	r.restart(t)
	return r
}

// restart starts a new engine for the real Codex.
func (r *real) restart(t *testing.T) {
	t.Helper()
	if r.engine != nil {
		r.engine.Close()
	}
	e, err := appserver.New(r.options)
	if err != nil {
		t.Fatal(err)
	}
	r.engine = e
	t.Cleanup(func() { e.Close() })
}

func (r *real) start(t *testing.T, h engine.Host, cfg protocol.Config) engine.Conversation {
	t.Helper()
	if cfg.Cwd == "" {
		cfg.Cwd = r.cwd
	}
	conv, err := r.engine.Start(t.Context(), cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	return conv
}

// resume resumes a conversation by its rollout.
func (r *real) resume(t *testing.T, conv engine.Conversation, h engine.Host, cfg protocol.Config) engine.Conversation {
	t.Helper()
	path, err := fileOf(t, r.engine, conv.ID())
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.engine.Resume(t.Context(), savedAt(path), cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// last returns the last request to the model.
func (r *real) last() string {
	all := r.Requests()
	return string(all[len(all)-1].Body)
}

// escalated returns a turn in which the model wants to write outside of the sandbox.
func escalated(id string) providertest.Turn {
	return providertest.Call(providertest.Tool(id, "exec_command", map[string]any{
		"cmd": "touch made.txt && echo made", "sandbox_permissions": "require_escalated", "justification": "to write",
	}))
}

var report = providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
	return providertest.Say("seen: " + r.LastToolOutput())
}}

func made(r *real) bool {
	_, err := os.Stat(filepath.Join(r.cwd, "made.txt"))
	return err == nil
}

func TestRealText(t *testing.T) {
	r := newReal(t, `approval_policy = "on-request"`, providertest.Say("hello"), providertest.Say("again"))
	h := &recorder{}
	conv := r.start(t, h, protocol.Config{})
	for _, want := range []string{"hello", "again"} {
		if err := conv.Turn(t.Context(), text("hi")); err != nil {
			t.Fatal(err)
		}
		if got := h.answer(); got != want {
			t.Errorf("answer %q, want %q; events %v", got, want, h.types())
		}
	}
}

// TestRealIncomplete has the real Codex report a response that the provider cuts off.
func TestRealIncomplete(t *testing.T) {
	r := newReal(t, `approval_policy = "never"`, providertest.Turn{Text: []string{"half ", "an"}, Cut: "length"})
	h := &recorder{}
	if err := start(t, r.engine, h).Turn(t.Context(), protocol.TurnInput{Items: protocol.TextInput("go")}); err != nil {
		t.Fatal(err)
	}
	end, _ := h.events[len(h.events)-1].(protocol.TaskComplete)
	if end.LastAgentMessage == nil || *end.LastAgentMessage != "half an" || end.Incomplete == "" {
		t.Errorf("the turn ended with %+v", end)
	}
}

func TestRealCommand(t *testing.T) {
	for _, test := range []struct {
		decision elicit.Decision
		made     bool
		aborts   bool
	}{
		{elicit.Approved, true, false},
		{elicit.ApprovedForSession, true, false},
		{elicit.Denied, false, false},
		{elicit.Abort, false, true},
		{"", false, false},
	} {
		t.Run(string(test.decision), func(t *testing.T) {
			r := newReal(t, `approval_policy = "on-request"`+"\n"+`sandbox_mode = "read-only"`, escalated("c1"), report)
			h := decide(test.decision)
			err := r.start(t, h, protocol.Config{}).Turn(t.Context(), text("go"))
			var abort *engine.AbortError
			if errors.As(err, &abort) != test.aborts || err != nil && !test.aborts {
				t.Errorf("error %v", err)
			}
			if made(r) != test.made {
				t.Errorf("made = %v; events %v", made(r), h.types())
			}
			if !test.aborts && !strings.HasPrefix(h.answer(), "seen: ") {
				t.Errorf("answer %q", h.answer())
			}
			if n := h.count("exec_approval_request"); n != 1 {
				t.Errorf("asked %d times", n)
			}
			if began := h.count("exec_command_begin"); began != h.count("exec_command_end") || (began == 1) != test.made {
				t.Errorf("events %v", h.types())
			}
			t.Log(h.types())
		})
	}
}

// TestRealApprovedForSession approves a command for the session, for which Codex also proposes a rule.
// It asks about the same command again, in the same turn and in another process.
func TestRealApprovedForSession(t *testing.T) {
	run := func(id string) providertest.Turn {
		return providertest.Call(providertest.Tool(id, "exec_command", map[string]any{
			"cmd": "ls .", "sandbox_permissions": "require_escalated", "justification": "to look",
		}))
	}
	r := newReal(t, `approval_policy = "on-request"`+"\n"+`sandbox_mode = "read-only"`, run("c1"), run("c2"), report, run("c3"), report)
	h := decide(elicit.ApprovedForSession)
	for _, want := range []int{2, 3} {
		if err := r.start(t, h, protocol.Config{}).Turn(t.Context(), text("go")); err != nil {
			t.Fatal(err)
		}
		if asked, ended := h.count("exec_approval_request"), h.count("exec_command_end"); asked != want || ended != want {
			t.Errorf("asked %d times, ran %d, want %d: %v", asked, ended, want, h.types())
		}
		r.restart(t)
	}
}

// TestRealLeavesTheSandbox checks what rules and questions must know: under untrusted Codex
// runs an approved command that fails in the sandbox again outside. It asks once, and
// nothing in the question says so. It does not do that each time, so the command is tried ten
// times; it may still stay inside.
func TestRealLeavesTheSandbox(t *testing.T) {
	const tries = 10
	var turns []providertest.Turn
	for i := range tries {
		turns = append(turns, providertest.Call(providertest.Tool(fmt.Sprint("c", i), "exec_command", map[string]any{"cmd": "touch made.txt"})), report)
	}
	r := newReal(t, "", turns...)
	h := decide(elicit.Approved)
	conv := r.start(t, h, protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted, Sandbox: protocol.SandboxReadOnly})
	n := 0
	for n < tries && !made(r) {
		n++
		if err := conv.Turn(t.Context(), text("go")); err != nil || h.count("exec_approval_request") != n {
			t.Fatalf("%v, %d turns, events %v", err, n, h.types())
		}
	}
	t.Logf("made %t, after %d turns", made(r), n)
	if q, ok := h.wait(t, "exec_approval_request").(protocol.ExecApprovalRequest); !ok || !q.LeavesSandbox || q.Confinable || q.Reason != "" {
		t.Errorf("asked %+v", q)
	}
}

// TestRealRefusalIsExplained checks that the model gets the reason of a refusal.
func TestRealRefusalIsExplained(t *testing.T) {
	r := newReal(t, `approval_policy = "on-request"`+"\n"+`sandbox_mode = "read-only"`, escalated("c1"), providertest.Say("well"))
	h := &recorder{exec: func(context.Context, protocol.ExecApprovalRequest) elicit.Outcome {
		return (&elicit.Question{}).Read([]byte(`{"action":"accept","content":{"decision":"denied","feedback":"use the makefile"}}`), nil)
	}}
	if err := r.start(t, h, protocol.Config{}).Turn(t.Context(), text("go")); err != nil || h.answer() != "well" {
		t.Fatalf("%v, %q", err, h.answer())
	}
	if n := len(r.Requests()); n != 2 || !strings.Contains(r.last(), "use the makefile") {
		t.Errorf("%d requests, the last: %s", n, r.last())
	}
}

func TestRealInterrupt(t *testing.T) {
	stall := make(chan struct{})
	r := newReal(t, "", providertest.Turn{Text: []string{"thinking"}, Stall: stall}, providertest.Say("again"))
	t.Cleanup(func() { close(stall) })
	h := &recorder{}
	conv := r.start(t, h, protocol.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- conv.Turn(ctx, text("go")) }()
	if err := r.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	within(t, func() {
		cancel(why)
		if err := <-done; !errors.Is(err, why) {
			t.Errorf("error %v", err)
		}
	})
	if err := conv.Turn(t.Context(), text("on")); err != nil || h.answer() != "again" {
		t.Errorf("next turn: %v, %q", err, h.answer())
	}
}

func TestRealResume(t *testing.T) {
	r := newReal(t, "", providertest.Say("one"), providertest.Say("two"))
	conv := r.start(t, &recorder{}, protocol.Config{})
	if err := conv.Turn(t.Context(), text("first")); err != nil {
		t.Fatal(err)
	}
	r.restart(t)
	h := &recorder{}
	path, err := fileOf(t, r.engine, conv.ID())
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.engine.Resume(t.Context(), savedAt(path), protocol.Config{}, h)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.all()[0].(protocol.SessionConfigured); len(got.InitialMessages) != 2 || got.RolloutPath != path {
		t.Errorf("resumed: %s, %s", got.RolloutPath, got.InitialMessages)
	}
	if err := again.Turn(t.Context(), text("second")); err != nil || h.answer() != "two" || again.ID() != conv.ID() {
		t.Errorf("%v, %q, %s", err, h.answer(), again.ID())
	}
	if !strings.Contains(r.last(), "first") {
		t.Error("the history is lost")
	}
	page, err := r.engine.List(t.Context(), protocol.ListConversationsParams{})
	if err != nil || len(page.Items) != 1 || page.Items[0].ConversationID != conv.ID() || page.Items[0].Preview != "first" || page.Items[0].Cwd == "" {
		t.Errorf("list: %v, %+v", err, page)
	}
	if _, err := r.engine.List(t.Context(), protocol.ListConversationsParams{Cursor: "bogus"}); !errors.Is(err, engine.ErrCursor) {
		t.Errorf("a bad cursor: %v", err)
	}
	if _, err := r.engine.Find(t.Context(), "0199a2b3-0000-7000-8000-000000000001"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
}

// fileOf returns the file of a conversation.
func fileOf(t testing.TB, e engine.Resumer, id string) (string, error) {
	t.Helper()
	s, err := e.Find(t.Context(), id)
	if err == nil && s.ID != id {
		t.Errorf("found %s, want %s", s.ID, id)
	}
	return s.File, err
}
