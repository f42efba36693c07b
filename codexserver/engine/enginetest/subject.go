package enginetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// limit bounds every wait, except for the end of a turn, which must not come first. It is
// reached only by an engine that breaks a promise.
const limit = 30 * time.Second

// Subject is an engine with a model that follows the steps of a test.
type Subject struct {
	// Engine is the engine that is tried.
	Engine engine.Engine
	// Config starts the conversations of the suite. Cwd is set by the suite; the approval policy must ask for every
	// command that is not known to be safe, or the engine must ask for all of them.
	Config protocol.Config
	// Script replaces what the model does next.
	Script func(steps ...Step)
}

// Step is one answer of the model: a command to run, or a text, or a failure.
type Step struct {
	// Command, when it is not nil, is an argv that the model wants to run.
	Command []string
	// Text is what it says otherwise.
	Text string
	// Fail makes the model's provider fail for good.
	Fail bool
	// Asked, when it is not nil, is called before the model answers, with what it
	// was sent: a text that has the words of the history's messages in it.
	Asked func(sent string)
}

// host keeps what an engine says and answers what it asks.
type host struct {
	engine.DenyAll
	decide func(ctx context.Context, r protocol.EventMsg) elicit.Outcome
	on     func(protocol.EventMsg) // each event; nil does nothing

	mu     sync.Mutex
	events []protocol.EventMsg
	closed bool // the turn has returned
	late   []string
}

func (h *host) Emit(m protocol.EventMsg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		h.late = append(h.late, m.EventType())
	}
	if h.events = append(h.events, m); h.on != nil {
		h.on(m)
	}
}

func (h *host) EmitAs(_ string, m protocol.EventMsg) { h.Emit(m) }

func (h *host) Ask(ctx context.Context, s approval.Subject) elicit.Outcome {
	event := s.Event()
	if event == nil {
		return h.DenyAll.Ask(ctx, s)
	}
	h.Emit(event)
	return h.decide(ctx, event)
}

func (h *host) take() []protocol.EventMsg {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.events
	h.events = nil
	return events
}

func always(d elicit.Decision) func(context.Context, protocol.EventMsg) elicit.Outcome {
	return func(context.Context, protocol.EventMsg) elicit.Outcome { return elicit.Outcome{Decision: d} }
}

// conversation is a started conversation of the suite.
type conversation struct {
	engine.Conversation
	*host
	cwd string
}

func start(t *testing.T, s *Subject, decide func(context.Context, protocol.EventMsg) elicit.Outcome) *conversation {
	t.Helper()
	h := &host{decide: decide}
	cfg := s.Config
	cfg.Cwd = folder(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c, err := s.Engine.Start(ctx, cfg, h)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &conversation{c, h, cfg.Cwd}
}

// say runs a turn and returns its events and how it ended.
func (c *conversation) say(t *testing.T, ctx context.Context, text string) ([]protocol.EventMsg, error) {
	t.Helper()
	return c.run(t, ctx, text, protocol.TurnInput{Items: protocol.TextInput(text)})
}

// completes runs a turn that ends with a message, and returns its events.
func (c *conversation) completes(t *testing.T, text, want string) []protocol.EventMsg {
	t.Helper()
	events, err := c.say(t, t.Context(), text)
	completed(t, events, err, want)
	return events
}

// run is say for any input, which text describes.
func (c *conversation) run(
	t *testing.T, ctx context.Context, text string, in protocol.TurnInput,
) ([]protocol.EventMsg, error) {
	t.Helper()
	c.take()
	c.mu.Lock()
	c.closed = false
	c.mu.Unlock()
	ended := make(chan error, 1)
	go func() { ended <- c.Turn(ctx, in) }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(2 * limit):
		t.Fatal(c.waiting(text, "task_complete or turn_aborted"))
	}
	c.mu.Lock()
	c.closed = true
	if len(c.late) > 0 {
		t.Errorf("events after the end of a turn: %q", c.late)
	}
	c.mu.Unlock()
	return c.take(), err
}

// waiting says which event did not come in a turn.
func (c *conversation) waiting(text, event string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("the turn %q waits for %s; there were: %s", text, event, types(c.events))
}
