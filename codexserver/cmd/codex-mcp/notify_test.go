package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// newTestNotifier returns a notifier whose program records its argument and takes a time.
func newTestNotifier(takes time.Duration) (n *notifier, sent func() []notification) {
	c := &configuration{settings: &config.Settings{Notify: []string{"x"}}, log: slog.New(slog.DiscardHandler)}
	n = c.newNotifier(&choice{Engine: &servertest.Engine{}})
	var mu sync.Mutex
	var all []notification
	n.run = func(_ context.Context, argv []string) error {
		var m notification
		argument := argv[len(argv)-1]
		if err := json.Unmarshal([]byte(argument), &m); err != nil || strings.Contains(argument, "\n") || len(argument) > 16<<10 {
			m.Type = fmt.Sprintf("%v: %q", err, argument)
		}
		mu.Lock()
		all = append(all, m)
		mu.Unlock()
		time.Sleep(takes)
		return nil
	}
	return n, func() []notification {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func question(words string) *approval.Request {
	return &approval.Request{Turn: "1", Subject: approval.Command{Cwd: "/work"}, Question: &elicit.Question{Message: words}}
}

// TestNotify checks when the program runs, and what it gets.
func TestNotify(t *testing.T) {
	asked := notification{Type: "approval-requested", ThreadID: "t1", TurnID: "1", Cwd: "/work", Question: "Run it?"}
	ended := func(status string) []notification {
		done := "done"
		return []notification{{Type: "agent-turn-complete", ThreadID: "t1", TurnID: "7", InputMessages: []string{}, LastAssistantMessage: &done, Status: status}}
	}
	hostile := asked
	hostile.Question = "(long)"
	for _, tt := range []struct {
		name string
		play func(codexserver.TurnObserver)
		want []notification
	}{
		{"an open question", func(u codexserver.TurnObserver) { u.Asked(question("Run it?")); pass(11) }, []notification{asked}},
		{"an answered question", func(u codexserver.TurnObserver) {
			q := question("Run it?")
			u.Asked(q)
			time.Sleep(notifyAfter - 1)
			u.Decided(q, approval.Decision{})
			pass(9)
		}, nil},
		{"a question that its turn ended", func(u codexserver.TurnObserver) {
			q := question("Run it?")
			u.Asked(q)
			u.Decided(q, approval.Decision{})
			u.End(nil)
			pass(11)
		}, ended("completed")},
		{"one that failed", func(u codexserver.TurnObserver) { pass(11); u.End(&engine.TurnError{}) }, ended("failed")},
		{"one that was stopped", func(u codexserver.TurnObserver) { pass(11); u.End(&engine.AbortError{}) }, ended("aborted")},
		{"hostile text", func(u codexserver.TurnObserver) {
			u.Asked(question("\x1b[31m$(touch /tmp/x)\n\x00`id`\xff\u202e" + strings.Repeat("A", 1<<20)))
			pass(11)
		}, []notification{hostile}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, sent := newTestNotifier(0)
				defer n.Close()
				turn := n.Turn("t1")
				turn.Event(protocol.TaskStarted{TurnID: "7"})
				turn.Event(protocol.AgentMessage{Message: "done"})
				tt.play(turn)
				got := sent()
				for i, m := range got {
					if strings.ContainsAny(m.Question, "\x00\x1b\n\u202e") || len(m.Question) > 2000+len("\u2026") {
						t.Errorf("%+v", m)
					} else if len(m.Question) > 1000 {
						got[i].Question = "(long)"
					}
				}
				must.Equal(t, "result", tt.want, got)
			})
		})
	}
}

// TestNotifiedAsByCodex runs the program of Codex's key at the end of each complete turn, with the whole
// texts, besides that of the settings.
func TestNotifiedAsByCodex(t *testing.T) {
	long := strings.Repeat("x", 5000)
	synctest.Test(t, func(t *testing.T) {
		n, _ := newTestNotifier(0)
		defer n.Close()
		n.command, n.codex = nil, []string{"codex"}
		var got []string
		n.run = func(_ context.Context, argv []string) error { got = append(got, strings.Join(argv, " ")); return nil }
		for id, err := range map[string]error{"complete": nil, "failed": &engine.TurnError{}, "stopped": &engine.AbortError{}} {
			turn := n.Turn(id)
			turn.Event(protocol.UserMessage{Message: "first"})
			turn.Event(protocol.TaskStarted{TurnID: "7"})
			turn.Event(protocol.UserMessage{Message: long})
			turn.Event(protocol.AgentMessage{Message: long})
			turn.End(err)
			synctest.Wait()
		}
		want := []string{`codex {"type":"agent-turn-complete","thread-id":"complete","turn-id":"7","input-messages":["first","` + long + `"],"last-assistant-message":"` + long + `"}`}
		must.Equal(t, "result", want, got)
	})
}

func pass(seconds int) { time.Sleep(time.Duration(seconds) * time.Second) }

// TestNotifyIsBounded asks very many questions: one program runs at a time, and few wait.
func TestNotifyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, sent := newTestNotifier(time.Minute)
		turn := n.Turn("t1")
		ran := func(want int) {
			t.Helper()
			must.Equal(t, "programs", want, len(sent()))
		}
		for range 100 {
			turn.Asked(question("Run it?"))
			time.Sleep(time.Millisecond)
		}
		pass(20)
		ran(1)
		time.Sleep(time.Hour)
		ran(1 + notifyWaiting)
		n.Close()
		turn.Asked(question("Run it?"))
		pass(20)
		ran(1 + notifyWaiting)
	})
}
