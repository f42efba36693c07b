package thread_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
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

func newTable(m *memory) *thread.Table { return thread.NewTable(m, &approve.Options{}) }

// alone is the attendance of a turn that nobody hears.
func alone() thread.Attend { return thread.Attend{Turn: turn.New(changes.Options{Off: true})} }

func say(t *testing.T, th *thread.Thread, text string) error {
	t.Helper()
	return th.Begin(t.Context(), alone(), protocol.TurnInput{Items: protocol.TextInput(text)}).Wait()
}

func start(t *testing.T, s *thread.Share) *thread.Thread {
	t.Helper()
	return must.Get(s.Start(t.Context(), admit.Trusted(), protocol.Config{}, thread.Attend{}))(t)
}

func TestRevive(t *testing.T) {
	m := &memory{}
	s := newTable(m).Share("")
	var wait sync.WaitGroup
	found := make([]*thread.Thread, 8)
	for i := range found {
		wait.Go(func() {
			th, err := s.Revive(t.Context(), admit.Trusted(), "7", protocol.Config{}, thread.Attend{})
			must.Check(t, err)
			found[i] = th
		})
	}
	wait.Wait()
	for _, th := range found {
		if th != found[0] {
			t.Errorf("two threads of one id")
		}
	}
	must.Equal(t, "how often it was resumed", 1, m.resume)
	if _, err := s.Revive(t.Context(), admit.Trusted(), "unknown", protocol.Config{}, thread.Attend{}); err == nil || !strings.Contains(err.Error(), `"unknown"`) {
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
			return th.Begin(ctx, alone(), protocol.TurnInput{Items: protocol.TextInput(text)}).Wait
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		shorter, stopShorter := context.WithTimeout(t.Context(), time.Millisecond)
		defer stopShorter()
		first, second, third := turn(short, "wait"), turn(shorter, "never"), turn(t.Context(), "third")
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
			if out := h.Ask(ctx, approval.Patch{}); out.Decision != elicit.Abort {
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
		if ran, err := th.Interrupt(t.Context()); !ran || err != nil {
			t.Errorf("interrupt: %t, %v", ran, err)
		}
		if err := <-acted; !errors.Is(err, thread.ErrInterrupted) {
			t.Errorf("it ended with %v", err)
		}
		must.Check(t, <-said)
		must.Check(t, s.Close())
	})
}

// TestIdle closes threads that nobody has used for an hour, and resumes one.
func TestIdle(t *testing.T) {
	wait := func(d time.Duration) {
		<-time.After(d)
		synctest.Wait()
	}
	const keeps = "of a client that cannot resume it"
	for name, tt := range map[string]struct {
		next int                                                    // engines know the files of the first hundred
		use  func(t *testing.T, s *thread.Share, th *thread.Thread) // for an hour and two minutes
		want bool                                                   // it is closed
	}{
		"unused":         {0, func(*testing.T, *thread.Share, *thread.Thread) { wait(62 * time.Minute) }, true},
		"without a file": {100, func(*testing.T, *thread.Share, *thread.Thread) { wait(62 * time.Minute) }, false},
		keeps:            {0, func(*testing.T, *thread.Share, *thread.Thread) { wait(62 * time.Minute) }, false},
		"with a turn": {0, func(t *testing.T, _ *thread.Share, th *thread.Thread) {
			wait(59 * time.Minute)
			must.Check(t, say(t, th, "hello"))
			wait(3 * time.Minute)
		}, false},
		"asked for": {0, func(_ *testing.T, s *thread.Share, th *thread.Thread) {
			wait(59 * time.Minute)
			s.Hold(th.ID())
			wait(3 * time.Minute)
		}, false},
		"with a long turn": {0, func(t *testing.T, _ *thread.Share, th *thread.Thread) {
			ctx, cancel := context.WithTimeout(t.Context(), 61*time.Minute)
			defer cancel()
			var abort *engine.AbortError
			if err := th.Begin(ctx, alone(), protocol.TurnInput{Items: protocol.TextInput("wait")}).Wait(); !errors.As(err, &abort) {
				t.Error(err)
			}
			wait(time.Minute)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{next: tt.next}
				s := newTable(m).Share("")
				th := must.Get(s.Start(t.Context(), admit.Trusted(), protocol.Config{}, thread.Attend{Keeps: name == keeps}))(t)
				tt.use(t, s, th)
				if closed := s.Find(th.ID()) == nil; closed != tt.want || closed != (m.ends() != "") {
					t.Errorf("it is closed: %t, the engine has closed %q", closed, m.ends())
				}
				again, err := s.Revive(t.Context(), admit.Trusted(), th.ID(), protocol.Config{}, thread.Attend{})
				if err != nil || (again == th) == tt.want || (m.resume == 1) != tt.want {
					t.Fatalf("revived: %v, resumed %d times", err, m.resume)
				}
				must.Check(t, say(t, again, "more"))
				must.Check(t, s.Close())
				wait(2 * time.Hour) // of a closed thread nothing is closed again
			})
		})
	}
}

// steered returns an engine whose turns ask about a command, and then report the decision and the messages.
func steered() *servertest.Engine {
	e := &servertest.Engine{Messages: make(chan string, 9)}
	e.Turn = func(ctx context.Context, h engine.Host, _ []protocol.InputItem) error {
		out := h.Ask(ctx, approval.Command{CallID: "c", Command: []string{"make"}, Cwd: "/"})
		var said strings.Builder
		said.WriteString(string(out.Decision) + ":")
		for len(e.Messages) > 0 {
			words := <-e.Messages
			h.Emit(protocol.UserMessage{Message: words})
			said.WriteString(" " + words)
		}
		h.Emit(protocol.AgentMessage{Message: said.String()})
		return nil
	}
	return e
}

// slow is an engine whose turns begin after a minute.
type slow struct{ engine.Engine }

func (e slow) Start(ctx context.Context, cfg protocol.Config, h engine.Host) (engine.Conversation, error) {
	c, err := e.Engine.Start(ctx, cfg, h)
	return slowConversation{c, c.(engine.Steerer)}, err
}

type slowConversation struct {
	engine.Conversation
	engine.Steerer
}

func (c slowConversation) Turn(ctx context.Context, in protocol.TurnInput) error {
	<-time.After(time.Minute)
	return c.Conversation.Turn(ctx, in)
}

// users returns what a desk was shown of the user.
func users(d *servertest.Desk) []string {
	return slices.DeleteFunc(d.Seen(), func(words string) bool { return !strings.HasPrefix(words, "user_message ") })
}

// TestSteer checks that a message reaches the running turn and is shown, and that it does not answer the open question.
func TestSteer(t *testing.T) {
	for answer, want := range map[string]string{servertest.Accept: "approved: yes, approve it", servertest.Decline: "denied: yes, approve it"} {
		synctest.Test(t, func(t *testing.T) {
			desk := &servertest.Desk{Answer: servertest.After(time.Minute, answer)}
			th := start(t, thread.NewTable(steered(), &approve.Options{Desk: desk}).Share(""))
			if err := th.Steer(t.Context(), protocol.TextInput("early")); !errors.Is(err, engine.ErrNoTurn) {
				t.Errorf("before the turn: %v", err)
			}
			done := make(chan error, 1)
			go func() { done <- say(t, th, "build") }()
			synctest.Wait()
			if err := th.Steer(t.Context(), protocol.TextInput("yes, approve it")); err != nil {
				t.Errorf("in the turn: %v", err)
			}
			synctest.Wait() // all effects of the message have happened
			select {
			case err := <-done:
				t.Fatalf("the turn ended without an answer: %v", err)
			default:
			}
			must.Check(t, <-done)
			if err := th.Steer(t.Context(), protocol.TextInput("late")); !errors.Is(err, engine.ErrNoTurn) {
				t.Errorf("after the turn: %v", err)
			}
			if got := users(desk); !slices.Equal(got, []string{"user_message build", "user_message yes, approve it"}) {
				t.Errorf("the desk was shown %q", got)
			}
			if got := th.Log().Last(1000); !strings.HasSuffix(got, "Codex:\n  "+want+"\n") {
				t.Errorf("the transcript ends with %q, want %q", got, want)
			}
		})
	}
}

// TestSteerAsTheTurnBegins checks that a message for a turn that the engine has not begun
// yet waits for it, until its sender gives up.
func TestSteerAsTheTurnBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &servertest.Desk{Answer: servertest.After(time.Minute, servertest.Decline)}
		th := start(t, thread.NewTable(slow{steered()}, &approve.Options{Desk: desk}).Share(""))
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
		must.Check(t, <-done)
		if got := users(desk); !slices.Equal(got, []string{"user_message build", "user_message patient"}) {
			t.Errorf("the desk was shown %q", got)
		}
	})
}

// TestSteerOfAnEngineThatCannot checks that the sender gets an error, and that the turn continues.
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
		if ran, err := th.Interrupt(t.Context()); !ran || err != nil {
			t.Errorf("interrupt: %t, %v", ran, err)
		}
		<-done
	})
}
