package mcp_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

const acceptOne = `{"q1":` + accepts + `}`

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
			play(t, &codexserver.Options{Calls: codexserver.CallOptions{TrustedCalls: true}}, func(t *testing.T, c *modernClient, w *servertest.Worker) {
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

// TestAlteredState changes every character of a state, cuts it and adds to it.
func TestAlteredState(t *testing.T) {
	play(t, nil, func(t *testing.T, c *modernClient, w *servertest.Worker) {
		state := c.state(c.codex("git"))
		var altered []string
		for i := range state {
			other := byte('A')
			if state[i] == other {
				other = 'B'
			}
			altered = append(altered, state[:i]+string(other)+state[i+1:], state[:i], state[:i]+"\n"+state[i:])
		}
		altered = append(altered, state+"A", state+"=", " "+state, state+state, "", strings.Repeat("A", 1<<20))
		for _, s := range altered {
			if a := c.round("codex", promptOf("git"), s, acceptOne).wait(); !refusedState(a) {
				t.Fatalf("%q of %q: %s", s, state, a.text())
			}
		}
		if w.Did() != "1" {
			t.Errorf("turns and commands %q", w.Did())
		}
		if a := c.round("codex", promptOf("git"), state, acceptOne).wait(); a.text() != "git: approved" {
			t.Errorf("the state itself: %s", a.text())
		}
	})
}

// TestStateIsGoodForOnce uses each state twice, of the same call and of another one
// with the same arguments.
func TestStateIsGoodForOnce(t *testing.T) {
	play(t, nil, func(t *testing.T, c *modernClient, w *servertest.Worker) {
		one, two := c.state(c.codex("a b")), c.state(c.codex("a b"))
		next := c.round("codex", promptOf("a b"), one, `{"q1":`+declines+`}`).wait()
		for _, responses := range []string{`{"q1":` + accepts + `}`, `{"q2":` + accepts + `}`, ""} {
			if a := c.round("codex", promptOf("a b"), one, responses).wait(); !refusedState(a) {
				t.Errorf("used before: %s", a.text())
			}
		}
		last := c.round("codex", promptOf("a b"), c.state(next), `{"q2":`+declines+`}`).wait()
		if last.text() != "a: denied, b: denied" {
			t.Errorf("%s", last.text())
		}
		if a := c.round("codex", promptOf("a b"), c.state(next), `{"q2":`+accepts+`}`).wait(); !refusedState(a) {
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

// TestManyRetriesAtOnce sends one state a thousand times.
func TestManyRetriesAtOnce(t *testing.T) {
	w := &servertest.Worker{}
	c := connectModern(t, w.Engine(), nil)
	state := c.state(c.codex("git"))
	var all sync.WaitGroup
	var mu sync.Mutex
	approved, refused := 0, 0
	for range 1000 {
		all.Go(func() {
			a := c.round("codex", promptOf("git"), state, acceptOne).wait()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case a.text() == "git: approved":
				approved++
			case refusedState(a):
				refused++
			}
		})
	}
	all.Wait()
	if approved != 1 || refused != 999 || w.Did() != "1 git" {
		t.Errorf("%d approved, %d refused, turns and commands %q", approved, refused, w.Did())
	}
}

func TestStateExpires(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{{24 * time.Hour, "git: approved"}, {24*time.Hour + 2*time.Second, "-32602"}} {
		play(t, &codexserver.Options{Approvals: elicit.Options{Timeout: -1}}, func(t *testing.T, c *modernClient, w *servertest.Worker) {
			a := c.codex("git")
			pass(tt.after - time.Second)
			if a := c.round("codex", promptOf("git"), c.state(a), acceptOne).wait(); !strings.HasPrefix(a.text(), tt.want) {
				t.Errorf("after %v: %s", tt.after, a.text())
			}
		})
	}
}

// TestStateOfAnotherSession sends a state in another session of the server, and to the next server.
func TestStateOfAnotherSession(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &servertest.Worker{}
		server := codexserver.New(w.Engine(), &codexserver.Options{Home: home})
		one, two := connectModernTo(t, server), connectModernTo(t, server)
		restarted := connectModern(t, w.Engine(), &codexserver.Options{Home: home})
		a := one.codex("git")
		two.codex("git") // it has states of its own
		for _, c := range []*modernClient{two, restarted} {
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
