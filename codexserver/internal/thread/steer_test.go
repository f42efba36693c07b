package thread_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// steerEngine is an engine whose conversations accept messages while a turn runs. A turn asks
// about a command, and then reports the decision and the messages.
type steerEngine struct{ slow time.Duration }

func (l steerEngine) Start(_ context.Context, _ protocol.Config, h engine.Host) (engine.Conversation, error) {
	h.Emit(protocol.SessionConfigured{SessionID: "1"})
	return &steerConversation{steerEngine: l, host: h}, nil
}

type steerConversation struct {
	steerEngine
	host engine.Host

	mu       sync.Mutex
	running  bool
	messages []string
}

func (e *steerConversation) ID() string   { return "1" }
func (e *steerConversation) Close() error { return nil }

func (e *steerConversation) Turn(ctx context.Context, _ protocol.TurnInput) error {
	if e.slow > 0 {
		<-time.After(e.slow)
	}
	e.mu.Lock()
	e.running = true
	e.mu.Unlock()
	e.host.Emit(protocol.TaskStarted{})
	out := e.host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: []string{"make"}, Cwd: "/"})
	e.mu.Lock()
	e.running = false
	messages := e.messages
	e.mu.Unlock()
	for _, words := range messages {
		e.host.Emit(protocol.UserMessage{Message: words})
	}
	said := string(out.Decision) + ": " + strings.Join(messages, ", ")
	e.host.Emit(protocol.AgentMessage{Message: said})
	e.host.Emit(protocol.TaskComplete{LastAgentMessage: &said})
	return nil
}

func (e *steerConversation) Steer(_ context.Context, items []protocol.InputItem) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.running {
		return engine.ErrNoTurn
	}
	e.messages = append(e.messages, protocol.TextOf(items))
	return nil
}

// screen is a desk that records what it shows.
type screen struct {
	asked  chan struct{}
	answer chan string

	mu     sync.Mutex
	events []string
}

func (s *screen) Name() approval.Decider { return "desk" }

func (s *screen) Event(_ approval.Thread, m protocol.EventMsg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := m.(type) {
	case protocol.UserMessage:
		s.events = append(s.events, "user: "+m.Message)
	case protocol.AgentMessage:
		s.events = append(s.events, "agent: "+m.Message)
	}
}

// Ask waits for an answer from the test.
func (s *screen) Ask(ctx context.Context, _ *approval.Request) (json.RawMessage, error) {
	close(s.asked)
	select {
	case words := <-s.answer:
		return json.RawMessage(words), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *screen) Decided(*approval.Request, approval.Decision) {}

func (s *screen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// TestSteer checks that a message reaches the running turn and is shown, and that it does
// not answer the open question.
func TestSteer(t *testing.T) {
	for _, test := range []struct{ answer, want string }{
		{`{"action":"accept"}`, "agent: approved: yes, approve it"},
		{`{"action":"decline"}`, "agent: denied: yes, approve it"},
	} {
		synctest.Test(t, func(t *testing.T) {
			desk := &screen{asked: make(chan struct{}), answer: make(chan string)}
			th := start(t, thread.NewTable(steerEngine{}, &approve.Options{Desk: desk}).Share(""))
			if err := th.Steer(t.Context(), protocol.TextInput("early")); !errors.Is(err, engine.ErrNoTurn) {
				t.Errorf("before the turn: %v", err)
			}
			done := make(chan error, 1)
			go func() { done <- say(t, th, "build") }()
			<-desk.asked
			if err := th.Steer(t.Context(), protocol.TextInput("yes, approve it")); err != nil {
				t.Errorf("in the turn: %v", err)
			}
			synctest.Wait() // all effects of the message have happened
			select {
			case err := <-done:
				t.Fatalf("the turn ended without an answer: %v", err)
			default:
			}
			desk.answer <- test.answer
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := th.Steer(t.Context(), protocol.TextInput("late")); !errors.Is(err, engine.ErrNoTurn) {
				t.Errorf("after the turn: %v", err)
			}
			want := []string{"user: build", "user: yes, approve it", test.want}
			if got := desk.all(); !slices.Equal(got, want) {
				t.Errorf("the desk was shown %q, want %q", got, want)
			}
		})
	}
}

// TestSteerAsTheTurnBegins checks that a message for a turn that the engine has not begun
// yet waits for it, until its sender gives up.
func TestSteerAsTheTurnBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &screen{asked: make(chan struct{}), answer: make(chan string, 1)}
		th := start(t, thread.NewTable(steerEngine{slow: time.Minute}, &approve.Options{Desk: desk}).Share(""))
		done := make(chan error, 1)
		go func() { done <- say(t, th, "build") }()
		synctest.Wait()
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := th.Steer(short, protocol.TextInput("hasty")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a sender that gives up: %v", err)
		}
		if err := th.Steer(t.Context(), protocol.TextInput("patient")); err != nil {
			t.Errorf("a sender that waits: %v", err)
		}
		desk.answer <- `{"action":"decline"}`
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got, want := desk.all(), []string{"user: build", "user: patient", "agent: denied: patient"}; !slices.Equal(got, want) {
			t.Errorf("the desk was shown %q, want %q", got, want)
		}
	})
}

// TestSteerOfAnEngineThatCannot checks that the sender gets an error, and that the turn
// continues.
func TestSteerOfAnEngineThatCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := start(t, newTable(&memory{}).Share(""))
		done := make(chan error, 1)
		go func() { done <- say(t, th, "wait") }()
		synctest.Wait()
		var refused *engine.RefusedError
		if err := th.Steer(t.Context(), protocol.TextInput("more")); !errors.As(err, &refused) {
			t.Errorf("error %v", err)
		}
		if !th.Busy() {
			t.Error("the turn ended")
		}
		if _, err := th.Interrupt(t.Context()); err != nil {
			t.Error(err)
		}
		<-done
	})
}
