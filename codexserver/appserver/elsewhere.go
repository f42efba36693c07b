package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/appserver/internal/wire"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// This file is about app-servers that other programs share, such as Codex's daemon. A thread
// may then have turns that another program began. Their events are overheard. Their
// questions are left to that program, unless a call waits here for the end of the turn.

// elsewhere is the part of a turn that another program began.
type elsewhere struct {
	host *overheard

	mu      sync.Mutex
	joined  *turn           // the own turn whose message the app-server put into this one
	asker   context.Context // of the call that waits for the end; nil without one
	changed chan struct{}   // closed when there is another asker
}

// overheard is the host of a turn that another program began.
type overheard struct {
	engine.Host
	turn   atomic.Pointer[string] // its id
	joined atomic.Bool            // the events are also those of an own turn
	part   *elsewhere
}

func (h *overheard) Emit(m protocol.EventMsg) {
	if h.joined.Load() {
		h.Host.Emit(m)
		return
	}
	id := ""
	if p := h.turn.Load(); p != nil {
		id = *p
	}
	engine.Overhear(h.Host, id, m)
}

func (h *overheard) EmitAs(_ string, m protocol.EventMsg) { h.Emit(m) }

// ApproveExec asks as [overheard.decide] says.
func (h *overheard) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	return h.decide(ctx, r, func(ctx context.Context) elicit.Outcome { return h.Host.ApproveExec(ctx, r) })
}

// ApprovePatch asks as [overheard.decide] says.
func (h *overheard) ApprovePatch(ctx context.Context, r protocol.PatchApprovalRequest) elicit.Outcome {
	return h.decide(ctx, r, func(ctx context.Context) elicit.Outcome { return h.Host.ApprovePatch(ctx, r) })
}

// Approve asks as [overheard.decide] says.
func (h *overheard) Approve(ctx context.Context, q *elicit.Question) elicit.Outcome {
	return h.decide(ctx, nil, func(ctx context.Context) elicit.Outcome { return h.Host.Approve(ctx, q) })
}

// decide asks while a call waits for the end of the turn. Only an approval and a refusal
// decide. Anything else, such as a client that cannot be asked, leaves the question to the
// other program. The result then is an abort, when ctx has ended.
func (h *overheard) decide(ctx context.Context, event protocol.EventMsg, ask func(context.Context) elicit.Outcome) elicit.Outcome {
	var out elicit.Outcome
	h.part.whileAwaited(ctx, func() {
		if event != nil {
			h.Emit(event)
		}
	}, func(ctx context.Context) bool {
		out = ask(ctx)
		return ctx.Err() == nil && (out.Decision.Approves() && !out.Confined || out.Decision == elicit.Denied && out.Reason == elicit.ReasonDeclined)
	})
	if ctx.Err() != nil {
		return elicit.ReadError(context.Cause(ctx), nil)
	}
	return out
}

// Elicit asks as decide does. Only an answer that accepts counts.
func (h *overheard) Elicit(ctx context.Context, f *elicit.Foreign) (result json.RawMessage, err error) {
	h.part.whileAwaited(ctx, func() {}, func(ctx context.Context) bool {
		result, err = h.Host.Elicit(ctx, f)
		return err == nil && answered(result).Action == wire.MCPServerElicitationActionAccept
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return result, err
}

// whileAwaited calls ask for each call that waits for the end of the turn, until ask returns
// true or ctx ends. It calls alone once if no call waits. The context of ask ends with the
// call.
func (e *elsewhere) whileAwaited(ctx context.Context, alone func(), ask func(context.Context) bool) {
	for told := false; ctx.Err() == nil; {
		e.mu.Lock()
		asker, changed := e.asker, e.changed
		e.mu.Unlock()
		if asker != nil {
			asking, stop := context.WithCancel(ctx)
			unhook := context.AfterFunc(asker, stop)
			done := ask(asking)
			unhook()
			stop()
			if done {
				return
			}
		} else if !told {
			told = true
			alone()
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// await makes the call of ctx the one that is asked, until leave is called.
func (e *elsewhere) await(ctx context.Context) (leave func()) {
	e.set(ctx)
	var nobody context.Context
	return func() { e.set(nobody) }
}

func (e *elsewhere) set(asker context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.joined != nil {
		return // which is asked until the end
	}
	e.asker = asker
	close(e.changed)
	e.changed = make(chan struct{})
}

// hear records a turn that another program began. The id may be "", if it is not known yet.
func (t *thread) hear(id string) *turn {
	e := &elsewhere{changed: make(chan struct{})}
	t.mu.Lock()
	host := t.host
	t.mu.Unlock()
	e.host = &overheard{Host: host, part: e}
	o := newTurn(context.Background(), t, e.host)
	o.elsewhere = e
	if id != "" {
		e.host.turn.Store(&id)
		o.id = id
		close(o.known)
	}
	t.mu.Lock()
	t.other = o
	t.mu.Unlock()
	return o
}

// owns reports whether the turn has an id. The answer to the start of a turn comes before
// its notifications, and may not have been read yet.
func (r *turn) owns(id string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	name, start := r.id, r.start
	r.mu.Unlock()
	if name == "" && start != nil {
		select {
		case <-start.Done():
			var reply wire.TurnReply
			if start.Result(&reply) == nil {
				r.named(reply.Turn.ID)
			}
			name = r.name()
		default:
		}
	}
	return name != "" && name == id
}

// overhears handles a notification of a turn that another program began. It returns false for
// the notifications of own turns.
func (t *thread) overhears(method, id string, n *wire.Note) bool {
	t.mu.Lock()
	r, left, o, heard := t.running, t.left, t.other, t.heard
	t.mu.Unlock()
	if o == nil || o.name() != id {
		switch {
		case r.owns(id), left.owns(id):
			return false
		case heard != nil && heard.name() == id:
			return true // a late one
		case o != nil && o.name() == "": // it ran when the thread was loaded
			o.elsewhere.host.turn.Store(&id)
			o.named(id)
		case method != wire.NoteTurnStarted:
			return true // of a turn that was not heard from its start
		default:
			o = t.hear(id)
			o.host.Emit(protocol.TaskStarted{})
		}
	}
	switch method {
	case wire.NoteTurnStarted:
		o.activate()
	case wire.NoteTurnCompleted:
		t.heardOut(o, n.Turn)
	case wire.NoteItemCompleted:
		o.reads(n.Item)
		fallthrough
	default:
		o.translate(method, n)
	}
	return true
}

// heardOut ends a turn that another program began, nil if its result is not known.
func (t *thread) heardOut(o *turn, result *wire.Turn) {
	t.mu.Lock()
	if t.other != o {
		t.mu.Unlock()
		return
	}
	t.other, t.heard = nil, o
	o.elsewhere.mu.Lock()
	joined := o.elsewhere.joined // under the lock of t, so that join cannot come between
	o.elsewhere.mu.Unlock()
	t.mu.Unlock()
	o.complete(result)
	var last []protocol.EventMsg
	if joined == nil && result != nil {
		last, _ = o.outcome(nil)
	}
	o.mu.Lock()
	o.ended = true
	for _, timer := range o.timers {
		timer.Stop()
	}
	for _, m := range last {
		o.host.Emit(m)
	}
	o.mu.Unlock()
	o.cancel(errTurnEnded)
	if joined != nil {
		joined.takeFrom(o)
	}
}

// reads records what the model has read in a turn that another program began.
func (r *turn) reads(raw json.RawMessage) {
	m, ok := userMessage(raw)
	if !ok {
		return
	}
	r.elsewhere.mu.Lock()
	joined := r.elsewhere.joined
	r.elsewhere.mu.Unlock()
	r.mu.Lock()
	client := clientOf(raw)
	if r.clients == nil {
		r.clients = map[string]bool{}
	}
	r.clients[client] = true
	if joined == nil || joined.client != client {
		r.host.Emit(m)
	}
	r.mu.Unlock()
}

// clientOf returns the id that a client gave its message.
func clientOf(raw json.RawMessage) string {
	var it wire.UserMessage
	if json.Unmarshal(raw, &it) != nil {
		return ""
	}
	return it.ClientID
}

// join makes the own turn r a part of the turn that another program began, if the app-server
// put its message into that one. The events, the questions and the end are then those of both.
func (t *thread) join(r *turn, id string) {
	if r.elsewhere != nil {
		return
	}
	t.mu.Lock()
	o, heard := t.other, t.heard
	if o != nil && o.name() == id {
		e := o.elsewhere
		e.host.joined.Store(true)
		e.set(r.ctx)
		e.mu.Lock()
		e.joined = r
		e.mu.Unlock()
		t.mu.Unlock()
		r.mu.Lock()
		r.guest = true
		r.mu.Unlock()
		return
	}
	t.mu.Unlock()
	if heard != nil && heard.name() == id { // which has ended meanwhile
		<-heard.completed
		r.takeFrom(heard)
	}
}

// takeFrom ends the own turn with the result of the turn that its message went to.
func (r *turn) takeFrom(o *turn) {
	o.mu.Lock()
	tr, result, read := o.tr, o.result, o.clients[r.client]
	o.mu.Unlock()
	r.mu.Lock()
	r.tr, r.prompted, r.guest = tr, read, true
	r.mu.Unlock()
	r.complete(result)
}

// unheard reports whether the turn has ended without having read its prompt, because the
// app-server put the prompt into a turn of another program that was about to end.
func (r *turn) unheard() bool {
	if r.client == "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.guest && r.result != nil && !r.prompted && r.aborted == nil
}

// alone waits until no turn runs that another program began. The questions of such a turn are
// also asked by host meanwhile.
func (t *thread) alone(ctx context.Context, host engine.Host) error {
	for told := false; ; told = true {
		t.mu.Lock()
		o := t.other
		t.mu.Unlock()
		if o == nil {
			return nil
		}
		if !told {
			host.Emit(protocol.BackgroundEvent{Message: "another program runs a turn of this conversation; this one begins after it"})
		}
		leave := o.elsewhere.await(ctx)
		select {
		case <-o.completed:
		case <-t.child.gone:
		case <-ctx.Done():
		}
		leave()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if t.child.isGone() {
			return t.child.obituary()
		}
	}
}

// Elsewhere implements [engine.Joint].
func (c *conversation) Elsewhere() <-chan struct{} {
	if _, o := c.others(); o != nil {
		return o.completed
	}
	return nil
}

// others returns the thread, and the turn in it that another program began, or nil.
func (c *conversation) others() (*thread, *turn) {
	ch := c.engine.now()
	if ch == nil || !ch.shared {
		return nil, nil
	}
	t := ch.find(c.id)
	if t == nil {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t, t.other
}

// steerElsewhere sends a message to the turn that another program began.
func (c *conversation) steerElsewhere(ctx context.Context, t *thread, o *turn, input []wire.Input) error {
	if err := c.unloosened(t); err != nil {
		return err
	}
	if o.name() == "" {
		return engine.ErrNoTurn
	}
	err := t.child.call(ctx, controlLimit, wire.CallTurnSteer, wire.SteerParams{ThreadID: t.id, ExpectedTurnID: o.name(), Input: input}, nil)
	return t.child.steered(err, true)
}

// now returns the app-server that runs, or nil.
func (e *Engine) now() *child {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.launch
	if l == nil || l.over() {
		return nil
	}
	select {
	case <-l.done:
		return l.child
	default:
		return nil
	}
}

// errElsewhere means that a request is about a turn of another program. It may not be
// answered.
var errElsewhere = errors.New("it belongs to a turn of another program")

// asked returns the turn that a request is about, or nil.
func (t *thread) asked(turnID, agent string) *turn {
	t.mu.Lock()
	r, o := t.running, t.other
	t.mu.Unlock()
	switch {
	case !t.child.shared:
		return r
	case o != nil && (agent != "" || turnID == "" || o.name() == turnID || o.name() == ""):
		return o
	case agent != "" || turnID == "" || r.owns(turnID):
		return r
	}
	return nil
}

// others reports whether a turn of another program runs.
func (c *child) others() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.threads {
		t.mu.Lock()
		runs := t.other != nil
		t.mu.Unlock()
		if runs {
			return true
		}
	}
	return false
}
