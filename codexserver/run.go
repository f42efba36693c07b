package codexserver

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Turn is a turn for [Server.Run]. Only Prompt is required.
type Turn struct {
	// Prompt is the task.
	Prompt string
	// Thread is the id of the thread to continue. The engine must be an [engine.Resumer], as
	// that of package native is and an [engine.TurnFunc] is not, unless a session has the
	// thread open. Otherwise the turn does not begin, and the error says so. Default: a new one.
	Thread string
	// Config is the configuration of a new thread. The caller is trusted: the limits of
	// [Options] on calls of tools do not apply. Default: the engine's.
	Config protocol.Config
	// Event is called with each event, in order. It must not block. Nil ignores
	// events.
	Event func(protocol.EventMsg)
	// Approve answers questions that [Options].Rules do not decide, at the same time as
	// the desk. It may be called by several goroutines at a time, and must return soon
	// after ctx ends. A panic, or an outcome without a decision, denies. Nil denies.
	Approve func(ctx context.Context, r *approval.Request) elicit.Outcome
}

// Answer is the result of a [Turn].
type Answer struct {
	// Thread is the id of the thread.
	Thread string
	// Text is the model's last message, "" when there is none.
	Text string
	// Incomplete says why the text is not whole, or is "".
	Incomplete string
}

// Run runs a turn without MCP and waits for its end. The end of ctx interrupts the turn.
//
// The error is an *engine.ConfigError for a fault in the configuration, an
// *engine.TurnError for a turn that failed, also by a panic of the engine, and an *engine.AbortError for one that was
// interrupted. With the last two, the answer has the thread's id. The thread is closed at
// the end unless another session uses it; then only an engine.Resumer can continue it.
func (s *Server) Run(ctx context.Context, t Turn) (Answer, error) {
	share := s.threads.Share("")
	defer func() {
		if err := share.Close(); err != nil {
			s.log.Warn("closing a thread", "error", err)
		}
	}()
	log := turn.New(changes.Options{})
	a := thread.Attend{Turn: log}
	if t.Event != nil {
		a.Client = callback(t.Event)
	}
	if t.Approve != nil {
		a.Ask = &approve.Place{Ask: func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
			return t.Approve(ctx, r), nil
		}}
	}
	var th *thread.Thread
	var err error
	_, resumes := s.methods.Engine.(engine.Resumer)
	switch {
	case t.Thread == "":
		th, err = share.Start(ctx, admit.Trusted(), t.Config, a)
	case !resumes && share.Hold(t.Thread) == nil:
		const words = "Turn.Thread: no session has %q open, and the engine cannot open it: it is no engine.Resumer"
		err = fmt.Errorf(words, t.Thread)
	default:
		th, err = share.Revive(ctx, admit.Trusted(), t.Thread, t.Config, a)
	}
	if err != nil {
		return Answer{}, err
	}
	err = th.Begin(ctx, a, protocol.TurnInput{Items: protocol.TextInput(t.Prompt)}).Wait()
	said := log.Result().Said
	return Answer{Thread: th.ID(), Text: said.Text, Incomplete: said.Lacks}, err
}

// callback calls [Turn].Event.
type callback func(protocol.EventMsg)

// Event implements [thread.Observer].
func (c callback) Event(e thread.Event) {
	if e.Msg != nil {
		c(e.Msg)
	}
}

// Ready implements [thread.Observer].
func (callback) Ready(context.Context) {}
