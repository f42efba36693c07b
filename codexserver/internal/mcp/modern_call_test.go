package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
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
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestProgressOfRounds sends progress with the token of the waiting request, and none while
// no request waits.
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
		if diff := cmp.Diff(first, c.told(one)); diff != "" {
			t.Errorf("the first request after its answer (-before +after):\n%s", diff)
		}
		// The silent request shows that it lives.
		if n := c.told(x)["notifications/progress"]; n < int(2*time.Minute/(15*time.Second)) {
			t.Errorf("%d times progress in two minutes", n)
		}
		if got := c.told(x)["codex/event"]; got == 0 {
			t.Error("no events for the retry")
		}
	})
}

// TestCancelledRequests ends the turn of a cancelled request, which gets no answer. The
// cancellation of a round that was answered does nothing.
func TestCancelledRequests(t *testing.T) {
	play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
		x := c.starts("wait:1h")
		pass(time.Second)
		x.cancel()
		synctest.Wait()
		if !w.Ended() || x.answered() {
			t.Errorf("ended %t, answered %t", w.Ended(), x.answered())
		}
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
		if !w.Ended() || two.answered() || w.Did() != "2 git" {
			t.Errorf("ended %t, answered %t, %q", w.Ended(), two.answered(), w.Did())
		}
	})
}

// TestCancelDuringAQuestion cancels a request at about the time when its question is sent.
// Either the request is answered, or its turn ends.
func TestCancelDuringAQuestion(t *testing.T) {
	for i := range 200 {
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

// TestHugeArguments accepts large arguments and refuses deeply nested ones.
func TestHugeArguments(t *testing.T) {
	ours := servertest.Lines(t, codexserver.New(servertest.Script(), nil))
	for more, want := range map[string]string{
		`"` + strings.Repeat("x", 8<<20) + `"`:                              `"text":"codex: unknown argument /more`,
		`{` + members(50_000) + `}`:                                         `"text":"codex: unknown argument /more`,
		strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000):               `"message":"nesting is deeper`,
		strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000): `"message":"nesting is deeper`,
	} {
		writeAll(t, ours, line(1, "tools/call", `"name":"codex","arguments":{"prompt":"say:hi","more":`+more+`}`))
		if got := servertest.Read(t, ours, ""); !strings.Contains(got, want) || !strings.Contains(got, `"isError":true`) && !strings.Contains(got, `"code":-32600`) {
			t.Errorf("%.20s: %.200s, want %s", more, got, want)
		}
	}
	writeAll(t, ours, line(2, "tools/call", `"name":"codex","arguments":{"prompt":"say:hi"}`))
	servertest.Read(t, ours, `"text":"hi"`)
}

// members are so many members in the worst order.
func members(n int) string {
	b := []string{}
	for i := n; i > 0; i-- {
		b = append(b, fmt.Sprintf(`"k%d":1`, i))
	}
	return strings.Join(b, ",")
}

// TestDuplicateRequestIDs sends one id twice. The first request keeps it; after its answer the
// retry may use it again.
func TestDuplicateRequestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const call = `"name":"codex","arguments":{"prompt":"wait:1m git"}`
		w := &servertest.Worker{}
		ours := servertest.Lines(t, codexserver.New(w.Engine(), nil))
		writeAll(t, ours, line(1, "tools/call", call))
		synctest.Wait()
		writeAll(t, ours, line(1, "tools/call", call))
		servertest.Read(t, ours, `"code":-32600`)
		var asked struct{ Result askedCall }
		if err := json.Unmarshal([]byte(until(t, ours, `"requestState"`)), &asked); err != nil {
			t.Fatal(err)
		}
		writeAll(t, ours, line(1, "tools/call", fmt.Sprintf(`%s,"requestState":%q,"inputResponses":%s`, call, asked.Result.RequestState, acceptOne)))
		servertest.Read(t, ours, "git: approved")
		if w.Did() != "1 git" {
			t.Error(w.Did())
		}
	})
}

// TestManyParkedCalls starts many calls whose questions the client never answers. All of
// them end.
func TestManyParkedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 1000
		w := &servertest.Worker{}
		c := connectModern(t, w.Engine(), &codexserver.Options{Approvals: elicit.Options{Timeout: time.Minute}})
		var calls []*exchange
		for range most {
			calls = append(calls, c.starts("git"))
		}
		first := calls[0].wait()
		for _, x := range calls[1:] {
			if a := x.wait(); a.RequestState == "" {
				t.Fatalf("%s", a.text())
			}
		}
		if a := c.again("git", first, acceptOne); a.text() != "git: approved" {
			t.Errorf("an answer: %s", a.text())
		}
		pass(time.Hour)
		if !w.Ended() || w.Did() != "1000 git" {
			t.Errorf("ended %t, %q", w.Ended(), w.Did())
		}
	})
}
