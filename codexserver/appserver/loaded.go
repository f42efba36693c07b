package appserver

import (
	"context"
	"os"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/program"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// loaded is a thread that a child has in memory.
type loaded struct {
	id    string
	child *child
	turns chan struct{} // holds one token while a turn runs

	mu      sync.Mutex
	policy  string   // the approval policy where it is a word
	sandbox string   // the type of the sandbox policy
	roots   []string // the writable folders of the sandbox policy, beside the working folder
	cwd     string   // the working folder
	running *running
	left    *running // interrupted, and not known to have ended over there
	before  string   // the id of the turn before, whose late messages are dropped
}

// setRules notes what holds for the thread.
func (t *loaded) setRules(r *threadReply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.policy, t.sandbox, t.roots, t.cwd = r.policy(), r.Sandbox.Type, r.Sandbox.WritableRoots, r.Cwd
}

// changed notes what a turn changes of it.
func (t *loaded) changed(p *turnParams) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.ApprovalPolicy != "" {
		t.policy = p.ApprovalPolicy
	}
	if p.SandboxPolicy != nil {
		t.sandbox, t.roots = p.SandboxPolicy.Type, p.SandboxPolicy.WritableRoots
	}
	if p.Cwd != "" {
		t.cwd = p.Cwd
	}
}

// folder is the thread's working folder.
func (t *loaded) folder() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cwd
}

// place is where a command of the thread runs in dir. Whatever the sandbox
// policy, a command of another turn, or a patch, may have written there.
func (t *loaded) place(dir string) program.Place {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: append([]string{dir}, t.roots...)}
	env := os.Environ()
	return program.Place{Dir: dir, Env: env, Roots: sandbox.AskedRoots(p, t.cwd, env)}
}

// leavesSandbox reports whether an approved command may run outside the
// sandbox. Under untrusted a command is asked about although it stays inside;
// one that wants to leave gives a reason.
func (t *loaded) leavesSandbox(p *commandApproval) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sandbox != "dangerFullAccess" && (t.policy != string(protocol.ApprovalUntrusted) || p.Reason != "")
}

// claim waits until no turn of the thread runs, whoever began it.
func (t *loaded) claim(ctx context.Context) error {
	select {
	case t.turns <- struct{}{}:
		return nil
	case <-t.child.gone:
		return t.child.obituary()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// free ends the claim.
func (t *loaded) free() { <-t.turns }

// begin makes a turn the thread's. A turn that was left must have ended before:
// the app-server would take another for a continuation of it.
func (t *loaded) begin(ctx context.Context, host engine.Host) (*running, error) {
	t.mu.Lock()
	left := t.left
	t.mu.Unlock()
	if left != nil {
		select {
		case <-left.completed:
		case <-t.child.gone:
			return nil, t.child.obituary()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if left != nil {
		t.left, t.before = nil, left.name()
	}
	t.running = newRunning(ctx, t, host)
	return t.running, nil
}

// leave takes the thread's turn away.
func (t *loaded) leave(r *running) {
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

// now is the turn that runs, nil between turns.
func (t *loaded) now() *running {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}

// notification acts on one notification of the thread.
func (t *loaded) notification(method string, n *note) {
	t.mu.Lock()
	r, left, before := t.running, t.left, t.before
	t.mu.Unlock()
	switch method { // those that name no turn
	case "account/rateLimits/updated":
		if r != nil {
			r.translate(method, n)
		}
		return
	case "serverRequest/resolved":
		if r != nil {
			r.resolve(n.RequestID)
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
		r = left // no other turn begins before it has ended
	}
	switch {
	case r == nil:
	case method == "turn/started":
		r.named(id)
	case r.name() != id:
	case method == "turn/completed":
		if n.Turn != nil {
			r.complete(n.Turn)
		}
	default:
		r.translate(method, n)
	}
}

// agentNotification acts on one notification of a sub-agent's thread: its turns
// are remembered, so that an interrupt reaches them, its commands and patches
// told, since its questions are about them, and its messages left out of the
// conversation.
func (t *loaded) agentNotification(method string, n *note) {
	r := t.now()
	if r == nil {
		return
	}
	switch method {
	case "turn/started":
		if n.Turn != nil {
			r.agentTurn(n.ThreadID, n.Turn.ID)
		}
	case "turn/completed":
		r.agentTurn(n.ThreadID, "")
	case "serverRequest/resolved":
		r.resolve(n.RequestID)
	case "item/commandExecution/outputDelta":
		r.translate(method, n)
	case "item/started", "item/completed":
		if it, err := parseItem(n.Item); err == nil && (it.Type == itemCommand || it.Type == itemFileChange) {
			r.translate(method, n)
		}
	}
}
