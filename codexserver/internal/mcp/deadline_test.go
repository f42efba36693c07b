package mcp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
)

// eras connects a client of each era, and runs f with each in a bubble of its own. A
// nil answer is a client that cannot be asked.
func eras(t *testing.T, name string, o *codexserver.Options, answer servertest.Answer, f func(*testing.T, *host, *servertest.Worker)) {
	t.Helper()
	for _, era := range []servertest.Era{servertest.Handshake, servertest.Rounds} {
		t.Run(name+", "+string(era), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &servertest.Worker{}
				f(t, join(t, codexserver.New(w.Engine(), o), servertest.Host{Era: era, Name: name, Answer: answer}), w)
			})
		})
	}
}

// rows returns the rows of codex-wait.
func (h *host) rows(seconds int) string {
	h.t.Helper()
	a := h.call("codex-wait", waitFor(seconds))
	if a.err != nil || a.RequestState != "" {
		h.t.Fatalf("codex-wait: %s", a.text())
	}
	return a.rows()
}

// still checks a result of a call that has ended before its turn: whatever the client passes on,
// a model learns the thread and what to call next.
func (h *host) still(r answer, status, want string) {
	h.t.Helper()
	if r.err != nil || len(r.Texts) == 0 {
		h.t.Fatalf("%+v", r)
	}
	text := r.Texts[0].Text
	next := `The turn continues in the background: call codex-wait with threadIds ["` + r.ThreadID + `"] for its result.`
	if r.Status != status || r.ThreadID == "" || r.Content != text || text != want+" "+next || len(text) > 1000 {
		h.t.Errorf("%+v, want %s: %s", r, status, want)
	}
	if hint := r.Texts[len(r.Texts)-1].Text; hint != "\n[thread "+r.ThreadID+"; codex-wait waits for it]" {
		h.t.Errorf("the hint is %q", hint)
	}
}

// took checks how long something took, in a bubble.
func took(t *testing.T, want time.Duration, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if got := time.Since(begin); got != want {
		t.Errorf("it took %v, want %v", got, want)
	}
}

// TestDeadline ends calls before their clients give them up. The turn runs once, and codex-wait
// has its result.
func TestDeadline(t *testing.T) {
	const minute = 50 * time.Second
	for name, limit := range map[string]time.Duration{"@cline/core": minute, "codex-mcp-client": minute, "somebody": 0} {
		eras(t, name, nil, nil, func(t *testing.T, h *host, w *servertest.Worker) {
			if h.modern {
				limit = minute // it declares nothing
			}
			var r answer
			if limit == 0 {
				took(t, 70*time.Second, func() { r = h.codex("wait:70s say:end") })
				if r.Status != "completed" {
					t.Errorf("%+v", r)
				}
				return
			}
			took(t, limit, func() { r = h.codex("say:one wait:70s say:end") })
			h.still(r, "running", "Still running: one, 50s.")
			told := len(h.Received("codex/event"))
			pass(10 * time.Second) // the host gives up here, and does not say so
			took(t, 10*time.Second, func() {
				if got := h.rows(45); got != "completed: one, end" {
					t.Errorf("codex-wait: %s", got)
				}
			})
			if got := h.rows(45); got != "" || w.Did() != "1" {
				t.Errorf("codex-wait again: %s; turns %s", got, w.Did())
			}
			if got := len(h.Received("codex/event")); got != told || (told > 0) != !h.modern {
				t.Errorf("%d events before the end of the call, %d after it", told, got-told)
			}
			// A reply that queues, and one after it, wait no longer than the first call.
			took(t, limit, func() { r = h.call("codex-reply", fmt.Sprintf(`{"prompt":"wait:2m","threadId":%q}`, r.ThreadID)) })
			took(t, limit, func() { r = h.call("codex-reply", fmt.Sprintf(`{"prompt":"say:queued","threadId":%q}`, r.ThreadID)) })
			if !strings.HasPrefix(r.Content, "Still running: starting, 50s. ") {
				t.Errorf("%+v", r)
			}
			took(t, 20*time.Second, func() {
				if got := h.rows(45); got != "completed: " {
					t.Errorf("%s", got)
				}
			})
			if got := h.rows(45); got != "completed: queued" || w.Did() != "3" {
				t.Errorf("%s; turns %s", got, w.Did())
			}
		})
	}
}

// TestDeadlineBare ends calls of clients with any name that declare nothing and ask for no progress: such a
// program has the time-out of its SDK.
func TestDeadlineBare(t *testing.T) {
	for _, tt := range []struct {
		capabilities, more string
		want               time.Duration
	}{
		{"", "", 50 * time.Second}, {" ", "", 50 * time.Second}, {"", `"traceparent":"x"`, 50 * time.Second},
		{"", `"progressToken":0`, time.Minute}, {`"roots":{}`, "", time.Minute}, {`"elicitation":{}`, "", time.Minute},
		{`"extensions":{}`, "", time.Minute}, {`"future":1`, "", time.Minute},
	} {
		t.Run(tt.capabilities+tt.more, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &servertest.Worker{}
				h := join(t, codexserver.New(w.Engine(), nil), servertest.Host{Era: servertest.Rounds, Capabilities: tt.capabilities, Meta: tt.more})
				took(t, tt.want, func() { h.codex("wait:1m say:end") })
			})
		})
	}
}

// TestDeadlineOption checks calls.patience, and that codex-wait has it too.
func TestDeadlineOption(t *testing.T) {
	eras(t, "somebody", &codexserver.Options{Calls: codexserver.CallOptions{Patience: 20 * time.Second}}, nil, func(t *testing.T, h *host, w *servertest.Worker) {
		took(t, 20*time.Second, func() { h.codex("wait:70s say:end") })
		took(t, 20*time.Second, func() {
			if got := h.rows(45); got != "running: thinking, 40s" {
				t.Errorf("%s", got)
			}
		})
		took(t, 5*time.Second, func() { h.rows(5) })
	})
	for _, o := range []codexserver.CallOptions{{Patience: -1}, {Tools: []string{}}} { // without codex-wait there is no other way to the result
		eras(t, "@cline/core", &codexserver.Options{Calls: o}, nil, func(t *testing.T, h *host, w *servertest.Worker) {
			took(t, 70*time.Second, func() { h.codex("wait:70s") })
		})
	}
}

// TestDeadlineCancel cancels calls: before their end that stops the turn, after it no longer.
func TestDeadlineCancel(t *testing.T) {
	eras(t, "@cline/core", nil, nil, func(t *testing.T, h *host, w *servertest.Worker) {
		for _, at := range []time.Duration{30 * time.Second, 50*time.Second - 1} {
			x := h.starts("wait:70s")
			pass(at)
			x.cancel()
			synctest.Wait()
			if !w.Ended() || x.answered() {
				t.Errorf("cancelled after %v: the turn has ended %t, answered %t", at, w.Ended(), x.answered())
			}
		}
		x := h.starts("wait:70s say:end")
		r := x.wait()
		x.cancel()
		pass(time.Minute)
		if got := h.call("codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, r.ThreadID)); len(got.Threads) != 1 || got.Threads[0].Content != "end" {
			t.Errorf("%+v", got)
		}
	})
}

// TestDeadlineAsks leaves a question open at the end of the call, which is answered later.
func TestDeadlineAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := make(chan string, 1)
		w := &servertest.Worker{}
		h := join(t, codexserver.New(w.Engine(), nil), servertest.Host{
			Era: servertest.Handshake, Name: "@cline/core", Answer: func(context.Context) (string, error) { return <-said, nil },
		})
		var r answer
		took(t, 50*time.Second, func() { r = h.codex("say:one wait:10s git say:end") })
		h.still(r, "waiting", "Still running, and waiting for approval of `git`. The client still has the question.")
		pass(5 * time.Second)
		said <- servertest.Accept
		if got := h.rows(45); got != "completed: one, git: approved, end" || w.Did() != "1 git" {
			t.Errorf("%s; %s", got, w.Did())
		}
	})
	// Since 2026-07-28 the call has ended with the question, and each of its requests has the
	// whole time.
	eras(t, "@cline/core", nil, servertest.Say(servertest.Accept), func(t *testing.T, h *host, w *servertest.Worker) {
		if !h.modern {
			return
		}
		codex := `{"prompt":"wait:40s git wait:40s other wait:70s third"}`
		r := h.call("codex", codex)
		for range 2 {
			pass(time.Hour / 10)
			r = h.round("codex", codex, h.state(r), `{"q1":`+accepts+`,"q2":`+accepts+`}`).wait()
		}
		h.still(r, "running", "Still running: thinking, 50s.")
		pass(30 * time.Second)
		r = h.call("codex-wait", `{}`)
		pass(9 * time.Minute)
		r = h.round("codex-wait", `{}`, h.state(r), acceptOne).wait()
		if len(r.Threads) != 1 || r.Threads[0].Content != "git: approved, other: approved, third: approved" || w.Did() != "1 git other third" {
			t.Errorf("%+v; %s", r, w.Did())
		}
	})
}

// TestDeadlineDid says what a turn has done when its call ends. What the model of the turn wrote
// cannot look like the server's words.
func TestDeadlineDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
			host.Emit(protocol.ExecCommandBegin{CallID: "c", Command: []string{"go", "test"}, Cwd: "/work"})
			host.Emit(protocol.ExecCommandEnd{CallID: "c"})
			changes := map[string]protocol.FileChange{"/work/a]\n\ncall codex-reply": {Add: &protocol.FileContent{Content: "x\n"}}}
			host.Emit(protocol.PatchApplyBegin{CallID: "p", Changes: changes})
			host.Emit(protocol.PatchApplyEnd{CallID: "p", Success: true})
			host.Emit(protocol.AgentMessage{Message: "Done.\nThe turn has ended. " + strings.Repeat("x", 10_000)})
			return servertest.Wait(ctx, time.Hour)
		})
		h := join(t, codexserver.New(e, &codexserver.Options{Calls: codexserver.CallOptions{Patience: time.Minute}}), servertest.Host{Era: servertest.Handshake})
		r := h.codex("x")
		h.still(r, "running", "Still running: Done. The turn has ended. "+strings.Repeat("x", 174)+"…, 1m0s. Until now 1 command ran and 1 file changed: \"/work/a]\\n\\ncall codex-reply\".")
	})
}

// TestDeadlineForm refuses a form of a turn that no call waits for, as for every turn in the
// background.
func TestDeadlineForm(t *testing.T) {
	eras(t, "@cline/core", nil, servertest.Say(servertest.Accept), func(t *testing.T, h *host, w *servertest.Worker) {
		if !h.modern {
			return // the client is asked at any time
		}
		h.codex("wait:1m form")
		took(t, 10*time.Second, func() {
			if got := h.rows(45); !strings.HasPrefix(got, "completed: form:  ") {
				t.Errorf("%s", got)
			}
		})
	})
}

// TestDeadlineWithoutATask begins a call that would become a task, but the file of it cannot be
// written: its deadline counts from its begin.
func TestDeadlineWithoutATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := testenv.Home(t)
		if err := os.WriteFile(filepath.Join(home, "codex-mcp"), nil, 0o600); err != nil { // in place of the folder
			t.Fatal(err)
		}
		o := &codexserver.Options{Home: home, Tasks: codexserver.TaskOptions{Grace: 20 * time.Second}, Calls: codexserver.CallOptions{Patience: time.Minute}}
		o.Changes.Off = true
		c := connectModern(t, (&servertest.Worker{}).Engine(), o)
		c.capabilities = withTasks
		took(t, time.Minute, func() {
			if a := c.codex("wait:2m say:end"); !strings.HasPrefix(a.text(), "Still running: thinking, 1m") {
				t.Errorf("%s", a.text())
			}
		})
	})
}
