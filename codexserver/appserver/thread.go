package appserver

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/program"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// thread is a thread that a child has in memory.
type thread struct {
	id    string
	child *child
	turns chan struct{} // holds one token while a turn runs

	mu      sync.Mutex
	policy  string   // the approval policy where it is a word
	sandbox string   // the type of the sandbox policy
	roots   []string // the writable folders of the sandbox policy, in addition to the working folder
	cwd     string   // the working folder
	running *turn
	left    *turn  // interrupted, and not known to have ended over there
	before  string // the id of the turn before, whose late messages are dropped
}

// setRules records the rules and the folder of the thread.
func (t *thread) setRules(r *threadReply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.policy, t.sandbox, t.roots, t.cwd = r.policy(), r.Sandbox.Type, r.Sandbox.WritableRoots, r.Cwd
}

// changed records what a turn changes of them.
func (t *thread) changed(p *turnParams) {
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

// folder returns the thread's working folder.
func (t *thread) folder() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cwd
}

// place returns where a command of the thread runs in dir. Whatever the sandbox
// policy, a command of another turn, or a patch, may have written there.
func (t *thread) place(dir string) program.Place {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: append([]string{dir}, t.roots...)}
	env := os.Environ()
	return program.Place{Dir: dir, Env: env, Roots: sandbox.AskedRoots(p, t.cwd, env)}
}

// leavesSandbox reports whether an approved command may run outside the
// sandbox. Under untrusted a command is asked about although it stays inside;
// one that wants to leave has a reason.
func (t *thread) leavesSandbox(p *commandApproval) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sandbox != "dangerFullAccess" && (t.policy != string(protocol.ApprovalUntrusted) || p.Reason != "")
}

// claim waits until no turn of the thread runs, no matter who began it.
func (t *thread) claim(ctx context.Context) error {
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
func (t *thread) free() { <-t.turns }

// begin returns a new turn of the thread, a review or another one. It waits a while for the end of a turn that
// was left: the app-server would take the new one for its continuation.
func (t *thread) begin(ctx context.Context, host engine.Host, reviews bool) (*turn, error) {
	t.mu.Lock()
	left := t.left
	t.mu.Unlock()
	if left != nil {
		limit := time.NewTimer(controlLimit)
		defer limit.Stop()
		select {
		case <-left.completed:
		case <-limit.C:
			if !t.child.busy() {
				t.child.kill(errStillStarting) // the next turn finds a fresh one
			}
			return nil, errStillStarting
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
	t.running = newTurn(ctx, t, host)
	t.running.reviews = reviews
	return t.running, nil
}

var errStillStarting = errors.New("codex app-server has not ended the turn before, which was given up; other conversations are not affected")

// leave ends r as the thread's turn.
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

// now returns the running turn, nil between turns.
func (t *thread) now() *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}

// notification handles one notification of the thread.
func (t *thread) notification(method string, n *note) {
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
	if r != nil && r.reviews {
		r.nameReview(method, id)
	}
	switch {
	case r == nil:
	case method == "turn/started" && r.reviews:
		r.activate()
	case method == "turn/started":
		r.named(id)
		r.activate()
	case r.name() != id:
	case method == "turn/completed":
		if n.Turn != nil {
			r.complete(n.Turn)
		}
	default:
		if method == "item/completed" {
			r.read(n.Item)
		}
		r.translate(method, n)
	}
}

// agentNotification handles one notification of a sub-agent's thread. It records
// turns, so that an interrupt reaches them, and reports commands and patches, which
// questions refer to. It ignores messages, which are not part of the conversation.
func (t *thread) agentNotification(method string, n *note) {
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
