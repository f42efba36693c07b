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
	"github.com/google/go-cmp/cmp"
)

// The number of notifications of each method that belong to a request.
func (c *modernClient) told(request string) map[string]int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := map[string]int{}
	for _, note := range c.notes {
		if note.request == request {
			n[note.method]++
		}
	}
	return n
}

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
			play(t, nil, func(t *testing.T, c *modernClient, w *servertest.Worker) {
				c.capabilities, c.level = tt.capabilities, tt.level
				meta := c.meta("1")
				if !tt.token {
					meta = strings.Replace(meta, `,"progressToken":"t1"`, "", 1)
				}
				c.startWith("tools/call", `{"name":"codex","arguments":`+promptOf(tt.prompt)+`,"_meta":`+meta+`}`).wait()
				got := map[string]bool{}
				for method := range c.told("1") {
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
	play(t, nil, func(t *testing.T, c *modernClient, w *servertest.Worker) {
		c.capabilities = withEvents
		a := c.codex("say:one git say:two wait:2m")
		first := c.told("1")
		if first["notifications/progress"] == 0 || first["codex/event"] == 0 {
			t.Errorf("the first request: %v", first)
		}
		pass(2 * time.Minute)
		x := c.round("codex", promptOf("say:one git say:two wait:2m"), c.state(a), acceptOne)
		x.wait()
		if diff := cmp.Diff(first, c.told("1")); diff != "" {
			t.Errorf("the first request after its answer (-before +after):\n%s", diff)
		}
		// The silent request shows that it lives.
		if n := c.told(x.id)["notifications/progress"]; n < int(2*time.Minute/(15*time.Second)) {
			t.Errorf("%d times progress in two minutes", n)
		}
		if got := c.told(x.id)["codex/event"]; got == 0 {
			t.Error("no events for the retry")
		}
	})
}

// TestCancelledRequests ends the turn of a cancelled request, which gets no answer. The
// cancellation of a round that was answered does nothing.
func TestCancelledRequests(t *testing.T) {
	play(t, nil, func(t *testing.T, c *modernClient, w *servertest.Worker) {
		x := c.start("tools/call", toolCall("codex", promptOf("wait:1h"))...)
		pass(time.Second)
		x.cancel()
		synctest.Wait()
		if !w.Ended() || len(x.answer) > 0 {
			t.Errorf("ended %t, %d answers", w.Ended(), len(x.answer))
		}
		one := c.start("tools/call", toolCall("codex", promptOf("git wait:1h"))...)
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
		if !w.Ended() || len(two.answer) > 0 || w.Did() != "2 git" {
			t.Errorf("ended %t, %d answers, %q", w.Ended(), len(two.answer), w.Did())
		}
	})
}

// TestCancelDuringAQuestion cancels a request at about the time when its question is sent.
// Either the request is answered, or its turn ends.
func TestCancelDuringAQuestion(t *testing.T) {
	for i := range 200 {
		play(t, &codexserver.Options{Approvals: elicit.Options{Timeout: time.Hour}}, func(t *testing.T, c *modernClient, w *servertest.Worker) {
			x := c.start("tools/call", toolCall("codex", promptOf("git"))...)
			pass(20*time.Millisecond + time.Duration(i%3-1))
			x.cancel()
			pass(time.Second)
			if len(x.answer) == 0 && !w.Ended() {
				t.Fatal("no answer, and the turn waits for one")
			}
		})
	}
}

// TestManyQuestions asks more questions in a call than clients accept. The ninth one waits
// for codex-wait, which counts from the start again.
func TestManyQuestions(t *testing.T) {
	play(t, nil, func(t *testing.T, c *modernClient, w *servertest.Worker) {
		prompt := strings.TrimSpace(strings.Repeat("git ", 20))
		a := c.codex(prompt)
		for i := 1; i <= 8; i++ {
			if a.keys() != fmt.Sprint("q", i) {
				t.Fatalf("round %d: %s", i, a.text())
			}
			a = c.round("codex", promptOf(prompt), c.state(a), fmt.Sprintf(`{"q%d":%s}`, i, accepts)).wait()
		}
		s := a.structured()
		if s.Status != "waiting" || s.ThreadID == "" || !strings.Contains(a.text(), "codex-wait") || !strings.Contains(a.text(), "`git`") {
			t.Fatalf("the ninth question: %s", a.raw)
		}
		wait := waitFor(45, s.ThreadID)
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
	play(t, &codexserver.Options{Approvals: elicit.Options{Timeout: time.Minute}}, func(t *testing.T, c *modernClient, w *servertest.Worker) {
		a := c.codex("git")
		rounds := 1
		for ; a.input != nil; rounds++ {
			a = c.round("codex", promptOf("git"), c.state(a), "").wait()
		}
		if rounds != 9 || a.structured().Status != "waiting" {
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
	w := &servertest.Worker{}
	c := connectModern(t, w.Engine(), nil)
	for name, more := range map[string]string{
		"long":  `"` + strings.Repeat("x", 8<<20) + `"`,
		"wide":  `{` + members(50_000) + `}`,
		"deep":  strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000),
		"abyss": strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000),
	} {
		a := c.call("codex", `{"prompt":"say:hi","more":`+more+`}`)
		want := "failed: codex: unknown argument /more"
		if name == "deep" || name == "abyss" {
			want = "-32600 nesting is deeper"
		}
		if s := a.text(); !strings.HasPrefix(s, want) {
			t.Errorf("%s: %.200s", name, s)
		}
	}
	if a := c.codex("say:hi"); a.text() != "hi" {
		t.Errorf("then: %s", a.text())
	}
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
	play(t, nil, func(t *testing.T, c *modernClient, w *servertest.Worker) {
		x := c.start("tools/call", toolCall("codex", promptOf("wait:1m git"))...)
		synctest.Wait()
		c.mu.Lock()
		delete(c.open, x.id)
		c.next--
		c.mu.Unlock()
		twice := c.start("tools/call", toolCall("codex", promptOf("wait:1m git"))...)
		if a := twice.wait(); a.err == nil || a.err.Code != -32600 {
			t.Fatalf("%s", a.text())
		}
		c.mu.Lock()
		c.open[x.id] = x
		c.mu.Unlock()
		a := x.wait()
		c.mu.Lock()
		c.next--
		c.mu.Unlock()
		if a := c.round("codex", promptOf("wait:1m git"), c.state(a), acceptOne).wait(); a.text() != "git: approved" || w.Did() != "1 git" {
			t.Errorf("%s, %q", a.text(), w.Did())
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
			calls = append(calls, c.start("tools/call", toolCall("codex", promptOf("git"))...))
		}
		first := calls[0].wait()
		for _, x := range calls[1:] {
			if a := x.wait(); a.input == nil {
				t.Fatalf("%s", a.text())
			}
		}
		if a := c.round("codex", promptOf("git"), c.state(first), acceptOne).wait(); a.text() != "git: approved" {
			t.Errorf("an answer: %s", a.text())
		}
		pass(time.Hour)
		if !w.Ended() || w.Did() != "1000 git" {
			t.Errorf("ended %t, %q", w.Ended(), w.Did())
		}
	})
}
