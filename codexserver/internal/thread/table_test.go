package thread_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// memory is an engine that keeps its conversations and repeats its prompts. A prompt
// "wait" waits for the end of its turn's context.
type memory struct {
	mu     sync.Mutex
	next   int
	resume int // how often a conversation was resumed
	closed []string
	act    func(context.Context, engine.Host) error // what a turn does; nil repeats its prompt
	fault  error                                    // of its calls
	closes error                                    // of the end of a conversation
}

func (m *memory) Start(_ context.Context, _ protocol.Config, h engine.Host) (engine.Conversation, error) {
	if m.fault != nil {
		return nil, m.fault
	}
	m.mu.Lock()
	m.next++
	id := strconv.Itoa(m.next)
	m.mu.Unlock()
	h.Emit(protocol.SessionConfigured{SessionID: id})
	return &memoryConversation{m, id, h}, nil
}

func (m *memory) Resume(_ context.Context, s engine.Saved, _ protocol.Config, h engine.Host) (engine.Conversation, error) {
	m.mu.Lock()
	m.resume++
	m.mu.Unlock()
	h.Emit(protocol.SessionConfigured{SessionID: s.ID})
	return &memoryConversation{m, s.ID, h}, nil
}

func (m *memory) Find(_ context.Context, id string) (engine.Saved, error) {
	if m.fault != nil {
		return engine.Saved{}, m.fault
	}
	if n, err := strconv.Atoi(id); err != nil || n > 100 {
		return engine.Saved{}, engine.ErrNotFound
	}
	return engine.Saved{ID: id, File: id}, nil
}

// ends returns the ids of the conversations that were closed.
func (m *memory) ends() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.closed, " ")
}

type memoryConversation struct {
	memory *memory
	id     string
	host   engine.Host
}

func (t *memoryConversation) ID() string { return t.id }

func (t *memoryConversation) Turn(ctx context.Context, in protocol.TurnInput) error {
	text := protocol.TextOf(in.Items)
	if t.memory.act != nil {
		return t.memory.act(ctx, t.host)
	}
	if text == "wait" {
		<-ctx.Done()
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
	}
	t.host.Emit(protocol.AgentMessage{Message: text})
	return nil
}

func (t *memoryConversation) Close() error {
	t.memory.mu.Lock()
	defer t.memory.mu.Unlock()
	t.memory.closed = append(t.memory.closed, t.id)
	return t.memory.closes
}

// plain resumes a thread without changes.
func plain() protocol.Config { return protocol.Config{} }

func newTable(m *memory) *thread.Table { return thread.NewTable(m, &approve.Options{}) }

func say(t *testing.T, th *thread.Thread, text string) error {
	t.Helper()
	return th.Begin(thread.Attend{}, protocol.TurnInput{Items: protocol.TextInput(text)}).Run(t.Context())
}

func start(t *testing.T, s *thread.Share) *thread.Thread {
	t.Helper()
	th, err := s.Start(t.Context(), protocol.Config{}, thread.Attend{})
	must.OK(t, err)
	return th
}

func TestRevive(t *testing.T) {
	m := &memory{}
	s := newTable(m).Share("")
	var wait sync.WaitGroup
	found := make([]*thread.Thread, 8)
	for i := range found {
		wait.Go(func() {
			th, err := s.Revive(t.Context(), "7", thread.Attend{}, plain)
			if err != nil {
				t.Error(err)
			}
			found[i] = th
		})
	}
	wait.Wait()
	for _, th := range found {
		if th != found[0] {
			t.Errorf("two threads of one id")
		}
	}
	if m.resume != 1 {
		t.Errorf("resumed %d times", m.resume)
	}
	if _, err := s.Revive(t.Context(), "unknown", thread.Attend{}, plain); err == nil || !strings.Contains(err.Error(), `"unknown"`) {
		t.Errorf("an unknown thread: %v", err)
	}
	if err := s.Close(); err != nil || m.ends() != "7" {
		t.Errorf("%v, closed %q", err, m.ends())
	}
}

func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		s := newTable(m).Share("")
		th := start(t, s)
		ended := make(chan error)
		go func() { ended <- say(t, th, "wait") }()
		synctest.Wait()
		if err := s.End(t.Context(), th.ID()); err != nil || m.ends() != "1" {
			t.Errorf("%v, closed %q", err, m.ends())
		}
		<-ended
		if err := s.End(t.Context(), th.ID()); err != nil {
			t.Errorf("ended twice: %v", err)
		}
	})
}

// TestTurnsInOrder checks that turns run in the order of their begin, and that a turn that gives up delays no other.
func TestTurnsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTable(&memory{}).Share("")
		th := start(t, s)
		var said []string
		stop := th.Listen(func(e protocol.Event) {
			if m, ok := e.Msg.(protocol.AgentMessage); ok {
				said = append(said, m.Message)
			}
		})
		turn := func(ctx context.Context, text string) func() error {
			queued := th.Begin(thread.Attend{}, protocol.TurnInput{Items: protocol.TextInput(text)})
			return func() error { return queued.Run(ctx) }
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first, second, third := turn(short, "wait"), turn(short, "never"), turn(t.Context(), "third")
		var left atomic.Int32
		for _, run := range []func() error{third, second, first} {
			go func() {
				_ = run() // the result does not matter here
				left.Add(1)
			}()
		}
		<-short.Done()
		synctest.Wait()
		if strings.Join(said, " ") != "third" || left.Load() != 3 {
			t.Errorf("said %q, %d turns ended", said, left.Load())
		}
		stop()
		if err := turn(t.Context(), "unheard")(); err != nil || len(said) != 1 {
			t.Errorf("said %q, %v", said, err)
		}
	})
}

// TestTurnWaits checks that a turn waits for the one before it, which can be interrupted, and whose
// questions then are answered at once.
func TestTurnWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{act: func(ctx context.Context, h engine.Host) error {
			<-ctx.Done()
			if out := h.ApprovePatch(ctx, protocol.PatchApprovalRequest{}); out.Decision != elicit.Abort {
				t.Errorf("asked after the end: %v", out.Decision)
			}
			return context.Cause(ctx)
		}}
		s := newTable(m).Share("")
		th := start(t, s)
		if s.Hold(th.ID()) != th || s.Hold("none") != nil {
			t.Error("the share does not hold the open thread alone")
		}
		acted, said := make(chan error), make(chan error)
		go func() { acted <- say(t, th, "act") }()
		synctest.Wait()
		m.act = nil
		go func() { said <- say(t, th, "hello") }()
		synctest.Wait()
		select {
		case err := <-said:
			t.Errorf("a turn ran meanwhile: %v", err)
		default:
		}
		if !th.Busy() {
			t.Error("the thread is not busy")
		}
		if ran, err := th.Interrupt(t.Context()); !ran || err != nil {
			t.Errorf("interrupt: %t, %v", ran, err)
		}
		if err := <-acted; !errors.Is(err, thread.ErrInterrupted) {
			t.Errorf("it ended with %v", err)
		}
		if err := <-said; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
