package appserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// thread is a thread that a child has in memory.
type thread struct {
	id    string
	child *child
	turns chan struct{} // holds one token while a turn runs

	mu    sync.Mutex
	rules box.Grant // of each turn
	turn  *turn     // the last one, which may run; nil before the first

	asking map[string]*elicit.Slots // by who asks: see queue
}

// ruling returns the rules of each turn.
func (t *thread) ruling() box.Grant {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rules
}

// folder returns the thread's working folder.
func (t *thread) folder() string { return t.ruling().Cwd }

// leavesSandbox reports whether a command may run outside the sandbox if approved. Codex
// does not say which of its questions are about that. Under the policy untrusted, it first
// tries in the sandbox, and if the command fails, runs it again outside without a further
// question.
func (t *thread) leavesSandbox() bool {
	return t.ruling().Sandbox.Mode != protocol.SandboxDangerFullAccess
}

// claim waits until no turn of the thread runs.
func (t *thread) claim(ctx context.Context) error {
	select {
	case t.turns <- struct{}{}:
		return nil
	case <-t.child.end.gone:
		return t.child.obituary()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// free ends the claim.
func (t *thread) free() { <-t.turns }

// settle waits for the end of the last turn, which may have been interrupted, up to a limit: the
// app-server would take the next one for its continuation.
func (t *thread) settle(ctx context.Context) error {
	last := t.last()
	if last == nil {
		return nil
	}
	limit := time.NewTimer(controlLimit)
	defer limit.Stop()
	select {
	case <-last.app.Ended():
		return nil
	case <-limit.C:
		if !t.child.busy() {
			t.child.kill(errStillStarting) // the next turn starts a new one
		}
		return errStillStarting
	case <-t.child.end.gone:
		return t.child.obituary()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errStillStarting = errors.New("codex app-server has not ended the previous, interrupted turn; try again; other conversations are not affected")

// begin starts a turn when no other one of the thread runs. It waits until the app-server has begun it,
// or for the end of ctx. The caller calls free after its end, unless there is an error.
func (t *thread) begin(ctx context.Context, host engine.Host, p *apptypes.TurnParams) (*turn, error) {
	if err := t.claim(ctx); err != nil {
		return nil, err
	}
	r, err := t.start(ctx, host, p)
	if err == nil {
		err = r.accepted(ctx)
	}
	if err != nil {
		t.free()
		return nil, err
	}
	return r, nil
}

// start asks the app-server to start a turn.
func (t *thread) start(ctx context.Context, host engine.Host, p *apptypes.TurnParams) (*turn, error) {
	if err := t.settle(ctx); err != nil {
		return nil, err
	}
	r := newTurn(ctx, t, host)
	r.mu.Lock() // a notification of the turn waits for app
	defer r.mu.Unlock()
	var err error
	if r.app, err = t.child.app.Begin(p, r.note); err != nil {
		r.cancel(err)
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn = r
	return r, nil
}

// last returns the last turn, or nil.
func (t *thread) last() *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turn
}

// now returns the running turn, or nil.
func (t *thread) now() *turn {
	r := t.last()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	return r
}

// agentNotification handles one notification of a sub-agent's thread. It records
// turns, so that an interrupt reaches them, and reports commands and patches, which
// questions refer to. It ignores messages, which are not part of the conversation.
func (t *thread) agentNotification(method string, n *apptypes.Note) {
	r := t.now()
	if r == nil {
		return
	}
	switch method {
	case apptypes.NoteTurnStarted:
		if n.Turn != nil {
			r.agentTurn(n.ThreadID, n.Turn.ID)
		}
	case apptypes.NoteTurnCompleted:
		r.agentTurn(n.ThreadID, "")
	case apptypes.NoteItemCommandExecutionOutputDelta:
		r.translate(method, n)
	case apptypes.NoteItemStarted, apptypes.NoteItemCompleted:
		if method == apptypes.NoteItemStarted && n.TurnID != "" {
			r.agentTurn(n.ThreadID, n.TurnID) // which may have started before it was announced
		}
		if it, err := appclient.ReadItem(n.Item); err == nil && (it.Type == apptypes.ThreadItemCommandExecution || it.Type == apptypes.ThreadItemFileChange) {
			r.translate(method, n)
		}
	}
}
