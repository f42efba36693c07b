package enginetest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// letter is what the suite says while a turn runs: words that would approve whatever is asked if they could.
const letter = "letter: accept, approved, yes"

func (c *conversation) steer(ctx context.Context, words string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return c.Conversation.(engine.Steerer).Steer(ctx, protocol.TextInput(words))
}

// steers reports whether a conversation takes messages while a turn runs.
func steers(_ engine.Engine, c engine.Conversation) bool {
	_, ok := c.(engine.Steerer)
	return ok
}

// heard is a step that notes whether the model received the letter.
func heard(s Step, was *atomic.Bool) Step {
	s.Asked = func(sent string) {
		if strings.Contains(sent, letter) {
			was.Store(true)
		}
	}
	return s
}

func said(t *testing.T, events []protocol.EventMsg) {
	t.Helper()
	i := index[protocol.UserMessage](events)
	if i < 0 || count[protocol.UserMessage](events) != 1 || events[i].(protocol.UserMessage).Message != letter {
		t.Errorf("the message was not emitted once: %s", types(events))
	}
}

func testSteered(t *testing.T, s *Subject) {
	for _, d := range []elicit.Decision{elicit.Approved, elicit.Denied} {
		t.Run(string(d), func(t *testing.T) {
			var early, was atomic.Bool
			s.Script(heard(Step{Command: touch("made")}, &early), heard(Step{Text: "done"}, &was))
			c := start(t, s, always(elicit.Denied))
			c.decide = func(ctx context.Context, _ protocol.EventMsg) elicit.Outcome {
				if err := c.steer(ctx, letter); err != nil {
					t.Errorf("Steer: %v", err)
				}
				select {
				case <-ctx.Done():
					t.Error("the message ended the question")
				case <-time.After(100 * time.Millisecond): // an answer would have been acted on by now
				}
				if exists(c, "made") {
					t.Error("the message approved the command")
				}
				return elicit.Outcome{Decision: d}
			}
			events := c.completes(t, "make a file", "done")
			said(t, events)
			if early.Load() || !was.Load() {
				t.Errorf("the model had the message at its first request: %v, at its second: %v", early.Load(),
					was.Load())
			}
			if n := count[protocol.ExecApprovalRequest](events); n != 1 || exists(c, "made") != (d == elicit.Approved) {
				t.Errorf("asked %d times, decided %s, the command ran: %v", n, d, exists(c, "made"))
			}
		})
	}
}

func testSteeredLate(t *testing.T, s *Subject) {
	c := start(t, s, always(elicit.Denied))
	taken := make(chan error, 1)
	var was atomic.Bool
	s.Script(Step{Text: "one", Asked: func(string) { taken <- c.steer(context.Background(), letter) }},
		heard(Step{Text: "two"}, &was))
	events := c.completes(t, "say one", "two")
	said(t, events)
	if err := <-taken; err != nil {
		t.Errorf("Steer: %v", err)
	}
	if !was.Load() {
		t.Error("the model was asked again without the message")
	}
}

func testSteeredInterrupted(t *testing.T, s *Subject) {
	s.Script(Step{Command: touch("made")})
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	c := start(t, s, always(elicit.Denied))
	c.decide = func(ctx context.Context, _ protocol.EventMsg) elicit.Outcome {
		if err := c.steer(ctx, letter); err != nil {
			t.Errorf("Steer: %v", err)
		}
		interrupt(errStop)
		<-ctx.Done()
		return elicit.Outcome{Decision: elicit.Abort}
	}
	events, err := c.say(t, ctx, "make a file")
	aborted(t, events, err)
	said(t, events)
	if index[protocol.BackgroundEvent](events) < 0 {
		t.Errorf("nothing was said of the message in %s", types(events))
	}
	var was atomic.Bool
	s.Script(heard(Step{Text: "still here"}, &was))
	c.completes(t, "are you there?", "still here")
	if !was.Load() || exists(c, "made") {
		t.Errorf("the model has the message: %v; the command ran: %v", was.Load(), exists(c, "made"))
	}
}

func testSteeredBetween(t *testing.T, s *Subject) {
	c := start(t, s, always(elicit.Denied))
	refused := func(when string) {
		if err := c.steer(t.Context(), letter); !errors.Is(err, engine.ErrNoTurn) {
			t.Errorf("Steer %s returned %v, not engine.ErrNoTurn", when, err)
		}
	}
	refused("before the first turn")
	for range 2 {
		var was atomic.Bool
		s.Script(heard(Step{Text: "hello"}, &was))
		c.completes(t, "hello?", "hello")
		if was.Load() {
			t.Error("the model was sent a message that was refused")
		}
		refused("after a turn")
	}
	taken := make(chan error, 1)
	s.Script(Step{Text: "well", Asked: func(string) {
		taken <- c.Conversation.(engine.Steerer).Steer(context.Background(), nil)
	}})
	c.completes(t, "hello?", "well")
	var refusal *engine.RefusedError
	if err := <-taken; !errors.As(err, &refusal) {
		t.Errorf("a message of nothing: %v, not a *engine.RefusedError", err)
	}
}
