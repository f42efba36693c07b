package servertest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// host records the events of an engine.
type host struct {
	engine.Host
	events []protocol.EventMsg
}

func (h *host) Emit(m protocol.EventMsg) { h.events = append(h.events, m) }

// TestEngine asks for what no test of a server shows: how the engine refuses, and what it has recorded.
func TestEngine(t *testing.T) {
	e, ctx := &servertest.Engine{}, t.Context()
	refused := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s is not refused", what)
		}
	}
	list := func(cursor string) (string, error) {
		r, err := e.List(ctx, protocol.ListConversationsParams{Cursor: cursor})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(len(r.Items), r.Items[0].ConversationID), nil
	}
	if got, err := list(""); got != "1past" || err != nil {
		t.Errorf("at first: %q, %v", got, err)
	}
	_, err := list("x")
	refused("a cursor", err)
	_, err = e.Start(ctx, protocol.Config{Profile: "nosuch"}, &host{})
	refused("an unknown profile", err)
	_, err = (&servertest.Engine{Err: servertest.ErrBroken}).Start(ctx, protocol.Config{}, &host{})
	refused("the error of Start", err)
	h := &host{}
	c, err := e.Start(ctx, protocol.Config{Cwd: "/w"}, h)
	if err != nil || len(e.Started()) != 1 || e.Started()[0].ID != c.ID() || e.Started()[0].Config.Cwd != "/w" {
		t.Fatalf("%+v, %v", e.Started(), err)
	}
	if s, ok := h.events[0].(protocol.SessionConfigured); !ok || s.Cwd != "/w" {
		t.Errorf("%+v", h.events)
	}
	if got, err := list(""); !strings.HasSuffix(got, strings.ToUpper(c.ID())) || err != nil {
		t.Errorf("with one: %q, %v", got, err)
	}
	for id, known := range map[string]bool{"past": true, c.ID(): true, "other": false} {
		if s, err := e.Find(ctx, id); (err == nil) != known || known && s != (engine.Saved{ID: id, File: "/rollouts/" + id}) {
			t.Errorf("%s: %v, %v", id, s, err)
		}
	}
	refused("a rollout elsewhere", func() error {
		_, err := e.Resume(ctx, engine.Saved{ID: "x", File: "/elsewhere/x"}, protocol.Config{}, h)
		return err
	}())
	h = &host{}
	again, err := e.Resume(ctx, engine.Saved{ID: c.ID(), File: "/rollouts/" + c.ID()}, protocol.Config{Cwd: "/other"}, h)
	if err != nil || again.ID() != c.ID() || e.Resumed()[0].Cwd != "/other" || len(e.Started()) != 1 {
		t.Errorf("%+v, %v", e.Resumed(), err)
	}
	if s, ok := h.events[0].(protocol.SessionConfigured); !ok || s.SessionID != c.ID() || len(s.InitialMessages) != 1 {
		t.Errorf("%+v", h.events)
	}
	if _, ok := again.(engine.Steerer); ok {
		t.Error("a turn takes messages")
	}
	e.Messages = make(chan string, 1)
	again, err = e.Resume(ctx, engine.Saved{ID: "past", File: "/rollouts/past"}, protocol.Config{}, &host{})
	if s, ok := again.(engine.Steerer); err != nil || !ok || s.Steer(ctx, []protocol.InputItem{{Text: "x"}}) != nil || len(e.Messages) != 1 {
		t.Errorf("a message: %t, %v", ok, err)
	}
}

// TestTurns plays the words of a script that ask nothing.
func TestTurns(t *testing.T) {
	dir := t.TempDir()
	for prompt, want := range map[string]string{
		"spend:5 spend:7": "token_count 5, token_count 12, agent_message ",
		"write:made":      "agent_message ",
		"wait:x":          "time: invalid duration",
		"spend:x":         "strconv.ParseInt",
		"write:no/made":   "open ",
	} {
		h := &host{}
		c, err := (&servertest.Engine{}).Start(t.Context(), protocol.Config{Cwd: dir}, h)
		if err != nil {
			t.Fatal(err)
		}
		h.events = nil
		err = c.Turn(t.Context(), protocol.TurnInput{Items: []protocol.InputItem{{Type: "text", Text: prompt}}})
		var got []string
		for _, m := range h.events {
			switch m := m.(type) {
			case protocol.TokenCount:
				u := m.Info.TotalTokenUsage
				got = append(got, fmt.Sprint("token_count ", u.InputTokens+u.OutputTokens))
			case protocol.AgentMessage:
				got = append(got, "agent_message "+m.Message)
			}
		}
		if text := strings.Join(got, ", "); err == nil && text != want || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %s, %v", prompt, text, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var abort *engine.AbortError
	for _, prompt := range []string{"wait:1h", "spend:1"} {
		c, err := (&servertest.Engine{}).Start(t.Context(), protocol.Config{Cwd: dir}, &host{})
		if err == nil {
			err = c.Turn(ended, protocol.TurnInput{Items: []protocol.InputItem{{Type: "text", Text: prompt}}})
		}
		if !errors.As(err, &abort) {
			t.Errorf("%s in a turn that has ended: %v", prompt, err)
		}
	}
}

// TestJournal writes and reads a journal, and a desk, at the same time.
func TestJournal(t *testing.T) {
	var j servertest.Journal
	d := &servertest.Desk{Invitation: "come"}
	var decided int
	d.OnDecided = func() { decided++ }
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				fmt.Fprintln(&j, "line")
				d.Event(approval.Thread{}, protocol.UserMessage{Message: "x"})
			}
		})
		all.Go(func() { _ = j.String() })
	}
	all.Wait()
	lines := 0
	for s := bufio.NewScanner(strings.NewReader(j.String())); s.Scan(); lines++ {
		if s.Text() != "line" {
			t.Errorf("%q", s.Text())
		}
	}
	d.Decided(nil, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Approved}, By: "desk"})
	got := []any{lines, len(d.Seen()), len(d.Threads()), d.Seen()[0], d.Decisions(), d.Invite(), decided}
	if diff := cmp.Diff([]any{100, 100, 100, "user_message x", []string{"approved by desk"}, "come", 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
