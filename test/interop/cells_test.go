package interop

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/test/interop/internal/wire"
)

// cell is one column of the table: what the client does, what the model says,
// and which effects follow.
type cell struct {
	name   string
	answer string // of the client's handler; "" is a client that cannot be asked
	// decisions are what the handler chooses in the forms, one for each question.
	decisions []string
	together  bool     // in a session the handler waits for a second question
	tasks     bool     // needs a session whose calls may become tasks
	flags     []string // of the server
	play      func(context.Context, *testing.T, *meeting)
	check     func(*testing.T, *meeting) // what went over the wire
}

var cells = []cell{
	{
		name: "connect",
		play: func(ctx context.Context, t *testing.T, m *meeting) {
			tools, err := m.list(ctx)
			if want := []string{"codex", "codex-interrupt", "codex-list", "codex-models", "codex-reply", "codex-review", "codex-show", "codex-wait"}; err != nil || !slices.Equal(slices.Sorted(slices.Values(tools)), want) {
				t.Errorf("tools %q, want %q: %v", tools, want, err)
			}
		},
		check: func(t *testing.T, m *meeting) {
			trace := m.trace(t)
			for _, part := range []string{`"name":"codex-mcp"`, fmt.Sprintf(`"name":%q`, m.engine.is)} {
				if !strings.Contains(trace, part) {
					t.Errorf("no %s on the wire", part)
				}
			}
		},
	},
	{
		name: "accept", answer: "accept",
		play: func(ctx context.Context, t *testing.T, m *meeting) {
			m.touching("", "made")
			m.delegate(ctx, t).is(t, false, "done")
			m.made(t, true, "made")
			m.wasAsked(t, 1)
		},
	},
	{
		name: "decline", answer: "decline",
		play: func(ctx context.Context, t *testing.T, m *meeting) {
			m.touching("", "made")
			m.delegate(ctx, t).is(t, false, "done")
			m.made(t, false, "made")
			m.wasAsked(t, 1)
			m.modelWasTold(t, m.engine.declined)
		},
	},
	{
		name: "cancel", answer: "cancel",
		play: func(ctx context.Context, t *testing.T, m *meeting) {
			m.touching("", "made")
			m.delegate(ctx, t).is(t, true, "", `"status":"aborted"`)
			m.made(t, false, "made")
			m.wasAsked(t, 1)
			if n := len(m.model.Requests()); n != 1 {
				t.Errorf("the turn went on: %d requests to the model", n)
			}
		},
	},
	{
		name: "each decision", answer: "accept", flags: []string{"-c", "approvals.schema=decision"},
		decisions: []string{"approved", "approved_for_session", "denied", "approved_always", "abort"},
		play:      playDecisions,
	},
	{name: "error", answer: "error", flags: []string{"-c", "approvals.timeout=1s"}, play: playError},
	{
		name: "no capability",
		// Over HTTP the question would wait for another client.
		flags: []string{"-c", "approvals.on_unsupported=deny"},
		play: func(ctx context.Context, t *testing.T, m *meeting) {
			m.touching("", "made")
			m.delegate(ctx, t).is(t, false, "done", "cannot show approval requests")
			m.made(t, false, "made")
			m.modelWasTold(t, "cannot show approval requests")
		},
		check: func(t *testing.T, m *meeting) {
			if strings.Contains(m.trace(t), "elicitation/create") {
				t.Error("a client that cannot be asked was asked")
			}
		},
	},
	{name: "two questions", answer: "accept", together: true, play: playTwo},
	{name: "ten approvals", answer: "accept", play: playTen},
	{
		name: "reply",
		play: func(ctx context.Context, t *testing.T, m *meeting) {
			m.model.Add(providertest.Say("the first answer"), providertest.Say("the second answer"))
			first := m.delegate(ctx, t)
			first.is(t, false, "the first answer")
			second := m.do(ctx, t, "codex-reply", map[string]any{"threadId": first.Structured.ThreadID, "prompt": "the second prompt"})
			second.is(t, false, "the second answer")
			if a, b := first.Structured.ThreadID, second.Structured.ThreadID; a != b {
				t.Errorf("thread %s went on as %s", a, b)
			}
			m.modelWasTold(t, "the first prompt")
			m.modelWasTold(t, "the first answer")
			m.modelWasTold(t, "the second prompt")
		},
	},
	{
		name: "cancel a call", answer: "accept", play: playCancel,
		check: func(t *testing.T, m *meeting) {
			if _, ok := m.session.(taskSession); ok {
				if !strings.Contains(m.trace(t), `"method":"tasks/cancel"`) {
					t.Error("the client did not cancel the task")
				}
				return
			}
			said := strings.Contains(m.trace(t), `"method":"notifications/cancelled"`)
			if closes := m.modern() && m.engine.over != overStdio; said == closes {
				t.Errorf("the client said that it cancels: %v", said) // where a request has a stream, it closes that
			}
		},
	},
	{name: "resume", answer: "accept", tasks: true, play: playResume},
	{
		name: "progress", answer: "accept",
		play: func(ctx context.Context, t *testing.T, m *meeting) {
			m.touching("", "made")
			c := m.task(nil)
			c.Progress = true
			r, err := m.call(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			r.is(t, false, "done")
			_, seen := m.seen()
			if !slices.ContainsFunc(seen, func(p progress) bool {
				return strings.HasPrefix(p.Message, "waiting for approval of ") || m.modern() && p.Message == "thinking" // see below
			}) {
				t.Errorf("progress %+v", seen)
			}
		},
		check: func(t *testing.T, m *meeting) {
			// The TypeScript SDK drops progress that arrives together with a result. In a
			// session that is what follows the client's answer; in 2026-07-28 the question
			// is a result too.
			trace := m.trace(t)
			if !running.MatchString(trace) || !strings.Contains(trace, `"message":"waiting for approval of `) {
				t.Error("no progress of the question or of the command")
			}
		},
	},
}

// running matches the progress of touch, with or without a shell around it.
var running = regexp.MustCompile(`"message":"running [^"]*touch made'?"`) // a shell's script is quoted

// task returns a call of codex that asks before every command.
func (m *meeting) task(more map[string]any) call {
	arguments := map[string]any{"prompt": "the first prompt", "cwd": m.cwd, "approval-policy": "untrusted", "sandbox": "danger-full-access"}
	maps.Copy(arguments, more)
	return call{Tool: "codex", Arguments: arguments}
}

// delegate hands the task over and returns its result.
func (m *meeting) delegate(ctx context.Context, t *testing.T) result {
	t.Helper()
	r, err := m.call(ctx, m.task(nil))
	if err != nil {
		t.Fatalf("codex: %v", err)
	}
	return r
}

// do calls a tool.
func (m *meeting) do(ctx context.Context, t *testing.T, tool string, arguments map[string]any) result {
	t.Helper()
	if _, mirrors := arguments["threadId"]; mirrors && m.engine.over == overHTTP && m.modern() {
		// A client learns from the list which arguments go into headers.
		if _, err := m.list(ctx); err != nil {
			t.Fatal(err)
		}
	}
	r, err := m.call(ctx, call{Tool: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// playError has the client's handler fail. In a legacy version the server receives the
// error, and the turn continues. In the modern one the client's call fails, the server
// receives nothing, and the turn ends when the question has been open for its time.
func playError(ctx context.Context, t *testing.T, m *meeting) {
	m.touching("", "made")
	defer m.made(t, false, "made")
	r, err := m.call(ctx, m.task(nil))
	if !m.modern() {
		if err != nil {
			t.Fatal(err)
		}
		r.is(t, false, "done", "could not show the approval request")
		m.modelWasTold(t, "could not show the approval request")
		m.wasAsked(t, 1)
		return
	}
	if err == nil {
		t.Fatalf("the call did not fail: %+v", r)
	}
	m.wasAsked(t, 1)
	list := m.do(ctx, t, "codex-list", map[string]any{}).Structured.Conversations
	if len(list) != 1 {
		t.Fatalf("conversations %+v", list)
	}
	m.do(ctx, t, "codex-reply", map[string]any{"threadId": list[0].ThreadID, "prompt": "go on"}).is(t, false, "done")
}

// playDecisions has a turn ask for each decision. What was approved for the session or by a
// rule runs once more, without a question. With the bridge every approval counts once.
func playDecisions(ctx context.Context, t *testing.T, m *meeting) {
	commands := []string{"touch approved", "touch -c session", "touch -c session", "touch denied", "touch -c always", "touch -c always", "touch aborted"}
	lasts := m.engine.is != "codex"
	if !lasts {
		isLasting := func(word string) bool { return strings.Contains(word, "always") || strings.Contains(word, "session") }
		commands, m.decisions = slices.DeleteFunc(commands, isLasting), slices.DeleteFunc(slices.Clone(m.decisions), isLasting)
	}
	for i, command := range commands {
		m.model.Add(providertest.Call(m.engine.run(fmt.Sprint("call_", i), strings.Fields(command)...)))
	}
	m.model.Add(providertest.Say("done"))
	m.delegate(ctx, t).is(t, true, "", `"status":"aborted"`)
	m.made(t, true, "approved")
	m.made(t, false, "denied")
	m.made(t, false, "aborted")
	m.wasAsked(t, len(m.decisions))
	if n := len(m.model.Requests()); n != len(commands) {
		t.Errorf("%d requests to the model", n)
	}
	for _, words := range []string{"Always allow ", "Approve for this session"} {
		if offered := strings.Contains(m.trace(t), words); offered != lasts {
			t.Errorf("a form offered %q: %t", words, offered)
		}
	}
}

// playTwo hands over two tasks in the background that ask at the same time. In the modern
// era codex-wait sends their questions, and nothing shows earlier that both are open. So
// it waits a second before, and longer in another round if that was too short.
func playTwo(ctx context.Context, t *testing.T, m *meeting) {
	names := []string{"alpha", "beta"}
	for i := range 3 {
		var threads []string
		for _, name := range names {
			name = fmt.Sprint(name, i)
			m.touching(name, name)
			r, err := m.call(ctx, m.task(map[string]any{"prompt": name, "background": true}))
			if err != nil {
				t.Fatal(err)
			}
			threads = append(threads, r.Structured.ThreadID)
		}
		if m.modern() {
			time.Sleep(time.Duration(i+1) * time.Second)
		}
		m.wait(ctx, t, threads...)
		for _, name := range names {
			m.made(t, true, fmt.Sprint(name, i))
		}
		m.wasAsked(t, 2*(i+1))
		if t.Failed() || asksTwo(m.wire(t)) {
			return
		}
	}
	t.Error("two questions were never open together")
}

// asksTwo reports whether two questions were open at the client at one time: two
// requests, or one result with both.
func asksTwo(messages []wire.Message) bool {
	open := 0
	for _, m := range messages {
		switch {
		case m.Sent && m.Method == "elicitation/create":
			open++
		case !m.Sent && m.Method == "":
			open--
		}
		if open == 2 || len(m.Result.InputRequests) == 2 {
			return true
		}
	}
	return false
}

// playTen has a turn ask ten times.
func playTen(ctx context.Context, t *testing.T, m *meeting) {
	for i := range 10 {
		m.model.Add(providertest.Call(m.engine.run(fmt.Sprint("call_", i), "touch", fmt.Sprint("made", i))))
	}
	m.model.Add(providertest.Say("done"))
	r := m.delegate(ctx, t)
	if r.Structured.Status == "waiting" {
		if got := m.wait(ctx, t, r.Structured.ThreadID); len(got) != 1 || got[0] != "done" {
			t.Errorf("codex-wait: %q", got)
		}
	} else {
		r.is(t, false, "done")
	}
	for i := range 10 {
		m.made(t, true, fmt.Sprint("made", i))
	}
	m.wasAsked(t, 10)
}

// playResume leaves a task while its question is open, and takes it up with another
// session. A server that the client starts has ended meanwhile, and with it the turn.
func playResume(ctx context.Context, t *testing.T, m *meeting) {
	m.touching("", "made")
	reference, err := m.session.(taskSession).begin(ctx, m.task(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	if m.session, err = m.again(); err != nil {
		t.Fatal(err)
	}
	r, err := m.session.(taskSession).resume(ctx, reference)
	if err != nil {
		t.Fatal(err)
	}
	lives := m.engine.over != overStdio
	if lives {
		r.is(t, false, "done")
		m.wasAsked(t, 1)
	} else {
		r.is(t, true, "The server ended while this task ran", `"status":"aborted"`)
		m.wasAsked(t, 0)
	}
	m.made(t, lives, "made")
}

// playCancel cancels a call while its command runs, and makes another one.
func playCancel(ctx context.Context, t *testing.T, m *meeting) {
	begun, ended := linger(ctx, t, m)
	first, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-begun:
			cancel()
		case <-first.Done():
		}
	}()
	r, err := m.call(first, m.task(nil))
	cancel()
	<-watched
	if err == nil {
		t.Errorf("the call that was cancelled returned %+v", r)
	}
	m.delegate(ctx, t).is(t, false, "still here")
	if err := ended(); err != nil {
		t.Error(err)
	}
}
