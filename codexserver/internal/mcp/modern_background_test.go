package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/elicit"
)

// background begins a turn in the background and returns its thread.
func (c *host) background(prompt string) string {
	c.t.Helper()
	a := c.call("codex", fmt.Sprintf(`{"prompt":%q,"background":true}`, prompt))
	if a.Status != "running" || a.ThreadID == "" {
		c.t.Fatalf("background: %s", a.text())
	}
	return a.ThreadID
}

func waitFor(seconds int, threads ...string) string {
	ids := ""
	if len(threads) > 0 {
		ids = fmt.Sprintf(`"threadIds":["%s"],`, strings.Join(threads, `","`))
	}
	return fmt.Sprintf(`{%s"seconds":%d}`, ids, seconds)
}

func TestBackground(t *testing.T) {
	play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
		begin := time.Now()
		took := func(want time.Duration, what string) {
			t.Helper()
			if got := time.Since(begin); got != want {
				t.Errorf("%s took %v, want %v", what, got, want)
			}
			begin = time.Now()
		}
		short, long := c.background("wait:10s say:short"), c.background("wait:2m say:long")
		took(0, "the beginning")
		for _, tt := range []struct {
			arguments, want string
			took            time.Duration
		}{
			{waitFor(3), "running: thinking; running: thinking", 3 * time.Second},
			{waitFor(20), "completed: short; running: thinking, 10s", 7 * time.Second},
			{waitFor(20), "running: thinking, 30s", 20 * time.Second}, // the other one was read
			{waitFor(20, short), "completed: short", 0},               // again and again
			{waitFor(20, strings.ToUpper(short), long), "completed: short; running: thinking, 30s", 0},
			{waitFor(0, "nope"), "unknown: No turn of this conversation was started here. codex-reply continues one that has ended.", 0},
			{waitFor(45, "nope"), "unknown: No turn of this conversation was started here. codex-reply continues one that has ended.", 0},
			{`{"threadIds":[]}`, "", 0},
			{waitFor(5, long, long), "running: thinking, 35s", 5 * time.Second},
			{`{"seconds":-3}`, "running: thinking, 35s", 0},
			{`{"seconds":3600}`, "running: thinking, 1m25s", 50 * time.Second},
			{`{}`, "completed: long", 35 * time.Second},
			{`{}`, "", 0},
		} {
			a := c.call("codex-wait", tt.arguments)
			if a.rows() != tt.want {
				t.Errorf("codex-wait %s: %q, want %q", tt.arguments, a.rows(), tt.want)
			}
			took(tt.took, tt.arguments)
		}
		if a := c.call("codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, c.codex("say:x").ThreadID)); a.rows() != "completed: x" {
			t.Errorf("a call that was answered: %s", a.rows())
		}
		if a := c.call("codex-wait", `{"seconds":"soon"}`); !strings.HasPrefix(a.text(), "failed: codex-wait: argument /seconds: ") {
			t.Errorf("%s", a.text())
		}
	})
}

// TestBackgroundAsks asks the questions of turns in the background at a call of codex-wait.
func TestBackgroundAsks(t *testing.T) {
	play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
		c.background("wait:1s one wait:10s say:end")
		c.background("wait:1s two wait:20s")
		a := c.call("codex-wait", `{}`)
		if a.keys() != "q1 q2" {
			t.Fatalf("all questions in one round: %s", a.text())
		}
		pass(5 * time.Minute) // for the user; the time of codex-wait is over
		a = c.round("codex-wait", `{}`, c.state(a), `{"q1":`+accepts+`,"q2":`+accepts+`}`).wait()
		if a.rows() != "completed: one: approved, end; running: thinking, 10s" && a.rows() != "running: thinking, 10s; completed: one: approved, end" {
			t.Errorf("%s %s", a.rows(), a.text())
		}
		if a = c.call("codex-wait", `{}`); a.rows() != "completed: two: approved" {
			t.Errorf("%s", a.rows())
		}
	})
}

// TestAnswerIsNotLost answers a question of codex-wait after another of its threads
// has ended.
func TestAnswerIsNotLost(t *testing.T) {
	play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
		c.background("wait:10s say:end")
		c.background("git wait:1m")
		a := c.call("codex-wait", `{}`)
		pass(20 * time.Second)
		a = c.round("codex-wait", `{}`, c.state(a), acceptOne).wait()
		synctest.Wait()
		if w.Did() != "2 git" || !strings.Contains(a.rows(), "completed: end") {
			t.Errorf("%s; turns and commands %q", a.text(), w.Did())
		}
	})
}

// TestResultIsNotLost abandons a codex-wait at its question. The next codex-wait returns
// the result.
func TestResultIsNotLost(t *testing.T) {
	play(t, &codexserver.Options{Approvals: elicit.Options{Timeout: time.Minute}}, func(t *testing.T, c *host, w *servertest.Worker) {
		c.background("git say:end")
		parked := c.call("codex-wait", `{}`)
		pass(2 * time.Minute)
		if a := c.call("codex-wait", `{}`); !strings.HasPrefix(a.rows(), "completed: git: denied, end") {
			t.Errorf("%q", a.rows())
		}
		if a := c.round("codex-wait", `{}`, c.state(parked), acceptOne).wait(); len(a.Texts) == 0 || w.Did() != "1" {
			t.Errorf("the late retry: %s; turns and commands %q", a.text(), w.Did())
		}
		// A cancelled call does not either.
		c.background("wait:10s say:more")
		x := c.start("tools/call", toolCall("codex-wait", `{}`)...)
		pass(10*time.Second - time.Nanosecond)
		x.cancel()
		pass(time.Second)
		if a := c.call("codex-wait", `{}`); a.rows() != "completed: more" {
			t.Errorf("%q", a.rows())
		}
	})
}

// TestTwoWaits asks at two calls of codex-wait. The first answer counts.
func TestTwoWaits(t *testing.T) {
	play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
		c.background("git wait:10s say:end")
		x, y := c.start("tools/call", toolCall("codex-wait", `{}`)...), c.start("tools/call", toolCall("codex-wait", `{"seconds":40}`)...)
		one, two := x.wait(), y.wait()
		a := c.round("codex-wait", `{}`, c.state(one), `{"q1":`+declines+`}`).wait()
		b := c.round("codex-wait", `{"seconds":40}`, c.state(two), acceptOne).wait()
		if a.rows() != "completed: git: denied, end" || b.rows() != a.rows() || w.Did() != "1" {
			t.Errorf("%s; %s; %q", a.text(), b.text(), w.Did())
		}
	})
}

// TestBackgroundWithoutForms decides a question at once if the client cannot be asked. If it
// can, the question stays open until its time-out.
func TestBackgroundWithoutForms(t *testing.T) {
	for _, tt := range []struct {
		capabilities, want string
		after              time.Duration
	}{
		{noForms, "This MCP client cannot show", 0},
		{withForms, "No answer within 60 s", time.Minute},
	} {
		play(t, &codexserver.Options{Approvals: elicit.Options{Timeout: time.Minute}}, func(t *testing.T, c *host, w *servertest.Worker) {
			c.capabilities = tt.capabilities
			begin := time.Now()
			id := c.background("git say:end")
			synctest.Wait()
			c.capabilities = noForms
			a := c.call("codex-wait", `{}`)
			if tt.after > 0 { // the client learns at once that there is a question
				if a.rows() != "waiting: waiting for approval of `git`" {
					t.Errorf("%q", a.rows())
				}
				for time.Since(begin) < tt.after {
					a = c.call("codex-wait", waitFor(50, id))
				}
			}
			if !strings.HasPrefix(a.rows(), "completed: git: denied, end") || !strings.Contains(a.rows(), tt.want) || time.Since(begin) != tt.after {
				t.Errorf("%q after %v", a.rows(), time.Since(begin))
			}
		})
	}
}

// TestEndOfModernInput ends the input while one turn runs, one waits for an answer, and one
// runs in the background.
func TestEndOfModernInput(t *testing.T) {
	play(t, &codexserver.Options{Approvals: elicit.Options{Timeout: -1}}, func(t *testing.T, c *host, w *servertest.Worker) {
		c.background("wait:1h")
		c.background("git wait:1h")
		c.codex("git wait:1h")
		c.call("codex-wait", `{}`)
		c.starts("wait:1h")
		synctest.Wait()
		begin := time.Now()
		c.End()
		if took := time.Since(begin); took > time.Second || !w.Ended() || w.Did() != "4" {
			t.Errorf("it took %v, ended %t, turns and commands %q", took, w.Ended(), w.Did())
		}
	})
}

// TestQuestionsOfOthers waits for a turn that is queued behind another client's turn. The
// questions of that turn are not shown.
func TestQuestionsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &servertest.Worker{}
		server := codexserver.New(w.Engine(), nil)
		one, two := connectModernTo(t, server), connectModernTo(t, server)
		id := one.codex("say:hello").ThreadID
		reply := func(prompt, more string) string {
			return fmt.Sprintf(`{"threadId":%q,"prompt":%q%s}`, id, prompt, more)
		}
		theirs := one.call("codex-reply", reply("wait:5s git", ""))
		two.call("codex-reply", reply("make", `,"background":true`))
		if a := two.call("codex-wait", waitFor(10)); a.RequestState != "" {
			t.Errorf("another client's question: %s", a.raw)
		}
		if a := one.round("codex-reply", reply("wait:5s git", ""), one.state(theirs), acceptOne).wait(); a.text() != "git: approved" {
			t.Errorf("%s", a.text())
		}
		if a := two.call("codex-wait", waitFor(10)); !strings.Contains(string(a.raw), "make") || a.keys() != "q1" {
			t.Errorf("its own question: %s", a.raw)
		}
	})
}
