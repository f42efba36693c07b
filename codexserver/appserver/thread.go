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

	mu      sync.Mutex
	rules   box.Grant // of each turn
	running *turn
	left    *turn  // interrupted, but not yet ended in the app-server
	before  string // the id of the previous turn, whose late notifications are ignored

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

// settle waits for the end of an interrupted turn, up to a limit, and returns it. It returns
// nil without one.
func (t *thread) settle(ctx context.Context) (left *turn, err error) {
	t.mu.Lock()
	left = t.left
	t.mu.Unlock()
	if left == nil {
		return nil, nil
	}
	limit := time.NewTimer(controlLimit)
	defer limit.Stop()
	select {
	case <-left.completed:
		return left, nil
	case <-limit.C:
		if !t.child.busy() {
			t.child.kill(errStillStarting) // the next turn starts a new one
		}
		return nil, errStillStarting
	case <-t.child.end.gone:
		return nil, t.child.obituary()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begin returns a new turn of the thread, after the end of an interrupted one, because the
// app-server would take the new turn for its continuation.
func (t *thread) begin(ctx context.Context, host engine.Host) (*turn, error) {
	left, err := t.settle(ctx)
	if err != nil {
		return nil, err
	}
	r := newTurn(ctx, t, host) // without the lock: it takes that of the child, which is taken first elsewhere
	t.mu.Lock()
	defer t.mu.Unlock()
	if left != nil {
		t.left, t.before = nil, left.name()
	}
	t.running = r
	return r, nil
}

var errStillStarting = errors.New("codex app-server has not ended the previous, interrupted turn; try again; other conversations are not affected")

// leave makes the thread have no running turn, if that is r.
func (t *thread) leave(r *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == r {
		t.running = nil
	}
	select {
	case <-r.completed:
		t.before = r.name()
	default:
		t.left = r
	}
}

// now returns the running turn, or nil.
func (t *thread) now() *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}

// notification handles one notification of the thread.
func (t *thread) notification(method string, n *apptypes.Note) {
	t.mu.Lock()
	r, left, before := t.running, t.left, t.before
	t.mu.Unlock()
	switch method { // these do not name a turn
	case apptypes.NoteAccountRateLimitsUpdated:
		if r != nil {
			r.translate(method, n)
		}
		return
	}
	id := n.TurnID
	if n.Turn != nil {
		id = n.Turn.ID
	}
	if id == "" || id == before {
		return
	}
	if left != nil {
		r = left // the next turn begins after its end
	}
	switch {
	case r == nil:
	case method == apptypes.NoteTurnStarted:
		r.named(id)
		r.activate()
	case r.name() != id:
	case method == apptypes.NoteTurnCompleted:
		if n.Turn != nil {
			r.complete(n.Turn)
		}
	default:
		if method == apptypes.NoteItemCompleted {
			r.read(n.Item)
		}
		r.translate(method, n)
	}
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
