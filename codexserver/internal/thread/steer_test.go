package thread_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// steered returns an engine whose turns ask about a command, and then report the decision and the messages.
func steered() *servertest.Engine {
	e := &servertest.Engine{Messages: make(chan string, 9)}
	e.Turn = func(ctx context.Context, h engine.Host, _ []protocol.InputItem) error {
		out := h.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: []string{"make"}, Cwd: "/"})
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
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := th.Steer(t.Context(), protocol.TextInput("late")); !errors.Is(err, engine.ErrNoTurn) {
				t.Errorf("after the turn: %v", err)
			}
			if got := users(desk); !slices.Equal(got, []string{"user_message build", "user_message yes, approve it"}) {
				t.Errorf("the desk was shown %q", got)
			}
			if got := th.Log().Last(1000); !strings.HasSuffix(got, "codex:\n  "+want+"\n") {
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
		if err := <-done; err != nil {
			t.Error(err)
		}
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
		if !th.Busy() {
			t.Error("the turn ended")
		}
		if _, err := th.Interrupt(t.Context()); err != nil {
			t.Error(err)
		}
		<-done
	})
}
