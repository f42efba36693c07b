package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// TestNotificationsOfARequest checks that each request gets the notifications that it asked
// for, and no others. The client checks that none comes after the answer.
func TestNotificationsOfARequest(t *testing.T) {
	const (
		progress = "notifications/progress"
		message  = "notifications/message"
		event    = "codex/event"
	)
	for _, tt := range []struct {
		capabilities, level, prompt string
		token                       bool
		want                        map[string]bool
	}{
		{noForms, "", "say:hi", false, map[string]bool{}},
		{noForms, "", "say:hi", true, map[string]bool{progress: true}},
		{noForms, "", "git", true, map[string]bool{progress: true}},
		{noForms, "debug", "say:hi", false, map[string]bool{}}, // nothing to warn of
		{noForms, "warning", "git", false, map[string]bool{message: true}},
		{withEvents, "", "say:hi", false, map[string]bool{event: true}},
		{withEvents, "info", "say:hi", true, map[string]bool{event: true, progress: true}},
		{`{"extensions":{"io.github.codexmcp/other":{}}}`, "", "say:hi", false, map[string]bool{}},
	} {
		t.Run(tt.capabilities+tt.level+tt.prompt, func(t *testing.T) {
			play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
				c.capabilities, c.level, c.token = tt.capabilities, tt.level, tt.token
				x := c.starts(tt.prompt)
				x.wait()
				got := map[string]bool{}
				for method := range c.told(x) {
					got[method] = true
				}
				must.Equal(t, "the result", tt.want, got)
			})
		})
	}
}

// TestProgressOfRounds sends progress with the token of the waiting request, and none while no request waits.
func TestProgressOfRounds(t *testing.T) {
	play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
		c.capabilities = withEvents
		one := c.starts("say:one git say:two wait:2m")
		a := one.wait()
		first := c.told(one)
		if first["notifications/progress"] == 0 || first["codex/event"] == 0 {
			t.Errorf("the first request: %v", first)
		}
		pass(2 * time.Minute)
		x := c.round("codex", promptOf("say:one git say:two wait:2m"), c.state(a), acceptOne)
		x.wait()
		must.Equal(t, "the first request after its answer", first, c.told(one))
		// The silent request shows that it lives, each 15 seconds.
		if n, beats := c.told(x)["notifications/progress"], int(2*time.Minute/(15*time.Second)); n < beats || n > beats+2 {
			t.Errorf("%d times progress in two minutes", n)
		}
		if got := c.told(x)["codex/event"]; got == 0 {
			t.Error("no events for the retry")
		}
	})
}

// TestCancelledRequests ends the turn of a cancelled retry, which gets no answer. The
// cancellation of a round that was answered does nothing.
func TestCancelledRequests(t *testing.T) {
	play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
		one := c.starts("git wait:1h")
		a := one.wait()
		one.cancel() // too late
		synctest.Wait()
		if w.Ended() {
			t.Fatal("the turn of an answered request was interrupted")
		}
		two := c.round("codex", promptOf("git wait:1h"), c.state(a), acceptOne)
		pass(time.Minute)
		one.cancel()
		synctest.Wait()
		if w.Ended() {
			t.Fatal("the round of before was cancelled, and the turn interrupted")
		}
		two.cancel()
		synctest.Wait()
		if !w.Ended() || two.answered() || w.Did() != "1 git" {
			t.Errorf("ended %t, answered %t, %q", w.Ended(), two.answered(), w.Did())
		}
	})
}

// TestCancelDuringAQuestion cancels a request at about the time when its question is sent.
// Either the request is answered, or its turn ends.
func TestCancelDuringAQuestion(t *testing.T) {
	for i := range 6 {
		play(t, &codexserver.Options{Approvals: elicit.Options{Timeout: time.Hour}}, func(t *testing.T, c *host, w *servertest.Worker) {
			x := c.starts("git")
			pass(20*time.Millisecond + time.Duration(i%3-1))
			x.cancel()
			pass(time.Second)
			if !x.answered() && !w.Ended() {
				t.Fatal("no answer, and the turn waits for one")
			}
		})
	}
}

// TestManyQuestions asks more questions in a call than clients accept. The ninth one waits
// for codex-wait, which counts from the start again.
func TestManyQuestions(t *testing.T) {
	play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
		prompt := strings.TrimSpace(strings.Repeat("git ", 20))
		a := c.codex(prompt)
		for i := 1; i <= 8; i++ {
			if a.keys() != fmt.Sprint("q", i) {
				t.Fatalf("round %d: %s", i, a.text())
			}
			a = c.again(prompt, a, fmt.Sprintf(`{"q%d":%s}`, i, accepts))
		}
		if a.Status != "waiting" || a.ThreadID == "" || !strings.Contains(a.text(), "codex-wait") || !strings.Contains(a.text(), "`git`") {
			t.Fatalf("the ninth question: %s", a.raw)
		}
		wait := waitFor(45, a.ThreadID)
		a = c.call("codex-wait", wait)
		for i := 1; i <= 8; i++ {
			a = c.round("codex-wait", wait, c.state(a), fmt.Sprintf(`{"q%d":%s}`, i, accepts)).wait()
		}
		if !strings.HasPrefix(a.rows(), "waiting: ") {
			t.Fatalf("the ninth question of codex-wait: %s", a.text())
		}
		a = c.call("codex-wait", `{}`) // it is in the background now
		for i := 1; i <= 4; i++ {
			a = c.round("codex-wait", `{}`, c.state(a), fmt.Sprintf(`{"q%d":%s}`, i, accepts)).wait()
		}
		if !strings.HasPrefix(a.rows(), "completed: git: approved") || strings.Count(w.Did(), "git") != 20 {
			t.Errorf("%s, %q", a.text(), w.Did())
		}
	})
}

// TestUnansweredRounds retries without an answer. The number of such rounds is bounded too.
func TestUnansweredRounds(t *testing.T) {
	play(t, &codexserver.Options{Approvals: elicit.Options{Timeout: time.Minute}}, func(t *testing.T, c *host, w *servertest.Worker) {
		a := c.codex("git")
		rounds := 1
		for ; a.RequestState != ""; rounds++ {
			a = c.again("git", a, "")
		}
		if rounds != 9 || a.Status != "waiting" {
			t.Errorf("%d rounds, then %s", rounds, a.text())
		}
		pass(time.Minute) // the turn, which has no request now, has its end all the same
		if a := c.call("codex-wait", `{}`); !strings.HasPrefix(a.rows(), "completed: git: denied") {
			t.Errorf("%s", a.text())
		}
	})
}

// TestRounds answers the questions of one call, with a retry for each answer.
func TestRounds(t *testing.T) {
	const session = `{"action":"accept","content":{"decision":"approved_for_session"}}`
	for _, tt := range []struct {
		prompt string
		rounds []string // inputResponses
		want   []string // the answers
		did    string   // turns and commands
	}{
		{"git", []string{`{"q1":` + accepts + `}`}, []string{"asks q1", "git: approved"}, "1 git"},
		{"git", []string{`{"q1":` + declines + `}`}, []string{"asks q1", "git: denied"}, "1"},
		{"git", []string{`{"q1":` + session + `}`}, []string{"asks q1", "git: approved_for_session"}, "1"},
		{"git", []string{`{"q1":{"action":"cancel"}}`}, []string{"asks q1", "failed: Turn aborted: "}, "1"},
		{"git", []string{`{"q1":{"action":"yes"}}`}, []string{"asks q1", "git: denied"}, "1"},
		{"git", []string{`{"q1":{"action":"accept","content":{"decision":"approved_always"}}}`}, []string{"asks q1", "git: denied"}, "1"}, // not offered
		{"git", []string{`{"q1":null}`}, []string{"asks q1", "git: denied"}, "1"},
		{"git", []string{`{"q1":7}`}, []string{"asks q1", "git: denied"}, "1"},
		{"git", []string{`{"q1":{"decision":"approved"}}`}, []string{"asks q1", "git: denied"}, "1"},                                    // of 2025
		{"git", []string{`{"q1":{"action":"accept","decision":"denied"}}`}, []string{"asks q1", "git: denied"}, "1"},                    // no two answers in one
		{"git", []string{`{"q1":` + accepts + `,"q2":` + declines + `}`}, []string{"asks q1", "git: approved"}, "1 git"},                // q2 was not asked
		{"git", []string{`{"q2":` + accepts + `}`, `{"q1":` + accepts + `}`}, []string{"asks q1", "asks q1", "git: approved"}, "1 git"}, // and it was not answered
		{"git", []string{"", `{}`, `{"q1":` + accepts + `}`}, []string{"asks q1", "asks q1", "asks q1", "git: approved"}, "1 git"},
		{"a b", []string{`{"q1":` + accepts + `}`, `{"q2":` + declines + `}`}, []string{"asks q1", "asks q2", "a: approved, b: denied"}, "1 a"},
		{"a b", []string{`{"q1":` + accepts + `}`, `{"q1":` + accepts + `}`, `{"q2":` + accepts + `}`}, []string{"asks q1", "asks q2", "asks q2", "a: approved, b: approved"}, "1 a b"}, // of another round
		{"a+b", []string{`{"q1":` + accepts + `,"q2":` + accepts + `}`}, []string{"asks q1 q2", "a: approved, b: approved"}, "1"},
		{"a+b+c", []string{`{"q2":` + declines + `}`, `{"q1":` + declines + `,"q3":` + declines + `,"q2":` + accepts + `}`}, []string{"asks q1 q2 q3", "asks q1 q3", "a: denied, b: denied, c: denied"}, "1"},
		{"form", []string{`{"q1":{"action":"accept","content":{}}}`}, []string{"asks q1", `form: {"action":"accept","content":{}} <nil>`}, "1"},
		{"say:hello", nil, []string{"hello"}, "1"},
	} {
		t.Run(tt.prompt, func(t *testing.T) {
			play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
				a := c.codex(tt.prompt)
				for i, responses := range tt.rounds {
					if !strings.HasPrefix(a.text(), tt.want[i]) {
						t.Fatalf("round %d: %s, want %s", i, a.text(), tt.want[i])
					}
					a = c.again(tt.prompt, a, responses)
				}
				if last := tt.want[len(tt.want)-1]; !strings.HasPrefix(a.text(), last) {
					t.Errorf("%s, want %s", a.text(), last)
				}
				if got := w.Did(); !strings.HasPrefix(got, tt.did) {
					t.Errorf("turns and commands %q, want %q", got, tt.did)
				}
			})
		})
	}
}

// TestQuestionForm checks the form of a question, and when it is sent: 20 ms after the first open one, and 30 ms after the
// last progress.
func TestQuestionForm(t *testing.T) {
	play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
		begin := time.Now()
		a := c.codex("a+b")
		must.Equal(t, "asked after", 30*time.Millisecond, time.Since(begin))
		for key, r := range a.InputRequests {
			var q struct {
				Method string
				Params struct{ Mode, Message string }
			}
			if err := json.Unmarshal(r, &q); err != nil || q.Method != "elicitation/create" || q.Params.Mode != "form" || q.Params.Message == "" || !strings.Contains(string(r), `"codex/approval":{`) {
				t.Errorf("%s: %s, %v", key, r, err)
			}
		}
		if strings.Contains(c.state(a), c.codex("say:x").ThreadID) || len(c.state(a)) > 1000 {
			t.Errorf("state %s", c.state(a))
		}
	})
}

// TestAskedAgain asks again for a missing answer. The time-out of the question does not start again.
func TestAskedAgain(t *testing.T) {
	play(t, &codexserver.Options{Approvals: elicit.Options{Timeout: time.Minute}}, func(t *testing.T, c *host, w *servertest.Worker) {
		a := c.codex("a+b")
		pass(40 * time.Second)
		first := c.state(a)
		a = c.round("codex", promptOf("a+b"), first, `{"q1":`+declines+`}`).wait()
		if a.keys() != "q2" || c.state(a) == first {
			t.Fatalf("%s, with the state of before: %t", a.text(), c.state(a) == first)
		}
		pass(30 * time.Second) // the minute is over, and no request came
		a = c.again("a+b", a, `{"q2":`+accepts+`}`)
		if s := a.text(); !strings.Contains(s, "no answer came back") || a.ThreadID == "" || !strings.HasPrefix(s, "failed: ") {
			t.Errorf("a late retry: %s", s)
		}
		if w.Did() != "1" {
			t.Errorf("turns and commands %q", w.Did())
		}
	})
}

// TestAbandonedRounds abandons a call at its question. The turn ends with the question's time-out, whatever it asked.
func TestAbandonedRounds(t *testing.T) {
	for _, tt := range []struct {
		prompt         string
		timeout, after time.Duration
	}{
		{"git wait:1h", time.Minute, time.Minute},
		{"git wait:1h", 0, elicit.DefaultTimeout},
		{"git wait:1h", -1, 24 * time.Hour}, // for ever is a day
		{"form wait:1h", time.Minute, time.Minute},
		{"a+b wait:1h", time.Minute, time.Minute},
	} {
		t.Run(fmt.Sprint(tt.prompt, tt.timeout), func(t *testing.T) {
			play(t, &codexserver.Options{Approvals: elicit.Options{Timeout: tt.timeout}}, func(t *testing.T, c *host, w *servertest.Worker) {
				a := c.codex(tt.prompt)
				pass(tt.after - time.Second)
				if w.Ended() {
					t.Error("the turn has ended early")
				}
				pass(2 * time.Second)
				if !w.Ended() {
					t.Error("the turn goes on")
				}
				late := c.again(tt.prompt, a, `{"q1":`+accepts+`}`)
				if !strings.Contains(late.text(), "no answer came back") || late.ThreadID == "" {
					t.Errorf("a late retry: %s", late.text())
				}
				if w.Did() != "1" {
					t.Errorf("turns and commands %q", w.Did())
				}
			})
		})
	}
}

// TestFormsOfEngines sends a form that an engine made only if clients can read it. One that they
// cannot would fail the result with all questions, and nobody would answer.
func TestFormsOfEngines(t *testing.T) {
	for form, want := range map[string]string{
		`{"type":"object","properties":{"sure":{"type":"boolean"}}}`: "approved",
		`{"type":"object","properties":{"sure":{"type":7}}}`:         "denied",
		`{"type":"array"}`: "denied",
		`{`:                "denied",
	} {
		synctest.Test(t, func(t *testing.T) {
			c := connectModern(t, engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
				out := host.Ask(ctx, approval.Other{Ask: &elicit.Question{Message: "Sure?", Schema: json.RawMessage(form)}})
				host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
				return nil
			}), nil)
			a := c.codex("p")
			if asked := strings.Contains(string(a.raw), `"requestedSchema":`+form); asked != (want == "approved") {
				t.Errorf("%s: %s", form, a.raw)
			} else if asked {
				a = c.again("p", a, `{"q1":{"action":"accept","content":{"sure":true}}}`)
			}
			if !strings.HasPrefix(a.text(), want) {
				t.Errorf("%s: %s, want %s", form, a.text(), want)
			}
		})
	}
}

// refusedState reports whether a retry was refused because of its state.
func refusedState(a answer) bool {
	return a.err != nil && a.err.Code == modern.CodeInvalidParams && strings.Contains(string(a.err.Data), `"/requestState"`)
}

// TestStateIsOfOneCall retries with the state of another call. Each retry is refused, and
// the state still works for its own call.
func TestStateIsOfOneCall(t *testing.T) {
	const own = `{"prompt":"git","config":{"a":[1,{"x":"é"}],"b":2}}`
	for _, tt := range []struct {
		name, tool, arguments string
		good                  bool
	}{
		{"other prompt", "codex", `{"prompt":"rm","config":{"a":[1,{"x":"é"}],"b":2}}`, false},
		{"one member more", "codex", `{"prompt":"git","config":{"a":[1,{"x":"é"}],"b":2},"cwd":"/"}`, false},
		{"one member less", "codex", `{"prompt":"git"}`, false},
		{"other order of a list", "codex", `{"prompt":"git","config":{"a":[{"x":"é"},1],"b":2}}`, false},
		{"other deep value", "codex", `{"prompt":"git","config":{"a":[1,{"x":"e"}],"b":2}}`, false},
		{"other type", "codex", `{"prompt":"git","config":{"a":[1,{"x":"é"}],"b":"2"}}`, false},
		{"other tool", "codex-reply", own, false},
		{"no arguments", "codex", `{}`, false},
		{"a member twice", "codex", `{"prompt":"git","prompt":"git","config":{"a":[1,{"x":"é"}],"b":2}}`, false},
		{"other order of members", "codex", `{"config":{"b":2,"a":[1,{"x":"é"}]},"prompt":"git"}`, true},
		{"other spelling", "codex", `{ "pr\u006fmpt" : "g\u0069t", "config":{"a":[1.0,{"x":"\u00e9"}],"b":2e0} }`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			play(t, &codexserver.Options{Calls: codexserver.CallOptions{TrustedCalls: true}}, func(t *testing.T, c *host, w *servertest.Worker) {
				a := c.call("codex", own)
				r := c.round(tt.tool, tt.arguments, c.state(a), acceptOne).wait()
				if tt.good {
					if r.text() != "git: approved" {
						t.Errorf("refused: %s", r.text())
					}
					return
				}
				if r.err == nil || r.err.Code != modern.CodeInvalidParams || w.Did() != "1" {
					t.Errorf("%s; turns and commands %q", r.text(), w.Did())
				}
				if r := c.round("codex", own, c.state(a), acceptOne).wait(); r.text() != "git: approved" {
					t.Errorf("then its own call: %s", r.text())
				}
			})
		})
	}
}

// TestStateIsGoodForOnce uses each state twice, of the same call and of another one with the same arguments.
func TestStateIsGoodForOnce(t *testing.T) {
	play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
		one, two := c.state(c.codex("a b")), c.state(c.codex("a b"))
		next := c.round("codex", promptOf("a b"), one, `{"q1":`+declines+`}`).wait()
		for _, responses := range []string{`{"q1":` + accepts + `}`, `{"q2":` + accepts + `}`, ""} {
			if a := c.round("codex", promptOf("a b"), one, responses).wait(); !refusedState(a) {
				t.Errorf("used before: %s", a.text())
			}
		}
		last := c.again("a b", next, `{"q2":`+declines+`}`)
		if last.text() != "a: denied, b: denied" {
			t.Errorf("%s", last.text())
		}
		if a := c.again("a b", next, `{"q2":`+accepts+`}`); !refusedState(a) {
			t.Errorf("of a call that has ended: %s", a.text())
		}
		if w.Did() != "2" {
			t.Errorf("turns and commands %q", w.Did())
		}
		// The two calls differ in nothing but their states.
		a := c.round("codex", promptOf("a b"), two, acceptOne).wait()
		if a.text() != "asks q2" || w.Did() != "2 a" {
			t.Errorf("%s, %q", a.text(), w.Did())
		}
	})
}

// TestStateOfAnotherSession sends a state in another session of the server, and to the next server.
func TestStateOfAnotherSession(t *testing.T) {
	home := testenv.Home(t)
	synctest.Test(t, func(t *testing.T) {
		w := &servertest.Worker{}
		server := codexserver.New(w.Engine(), &codexserver.Options{Home: home})
		one, two := connectModernTo(t, server), connectModernTo(t, server)
		restarted := connectModern(t, w.Engine(), &codexserver.Options{Home: home})
		a := one.codex("git")
		two.codex("git") // it has states of its own
		for _, c := range []*host{two, restarted} {
			r := c.round("codex", promptOf("git"), one.state(a), acceptOne).wait()
			if !refusedState(r) || !strings.Contains(r.err.Message, "the server was restarted") || !strings.Contains(r.err.Message, "codex-reply continues") {
				t.Errorf("%s", r.text())
			}
		}
		if w.Did() != "2" {
			t.Errorf("turns and commands %q", w.Did())
		}
		if r := one.round("codex", promptOf("git"), one.state(a), acceptOne).wait(); r.text() != "git: approved" {
			t.Errorf("its own session: %s", r.text())
		}
	})
}
