package appserver

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// This file is about app-servers that other programs share, such as Codex's daemon. A thread
// may then have turns that another program began. Their events are overheard. Their
// questions are left to that program, unless a call waits here for the end of the turn.

// elsewhere is the part of a turn that another program began. The turn's lock guards it.
type elsewhere struct {
	joined  *turn           // the own turn whose message the app-server put into this one
	asker   context.Context // of the call that waits for the end; nil without one
	changed chan struct{}   // closed when there is another asker
	clients map[string]bool // the ids of the messages that were read
}

// overheard is the host of a turn that another program began.
type overheard struct {
	engine.Host
	turn *turn
}

// Emit gives the event to an own turn that is a part of this one, else it is overheard. The turn's
// lock is held.
func (h *overheard) Emit(m protocol.EventMsg) {
	if h.turn.elsewhere.joined != nil {
		h.Host.Emit(m)
		return
	}
	engine.Overhear(h.Host, h.turn.start.id, m)
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
	h.turn.whileAwaited(ctx, func() {
		if event != nil {
			h.turn.report(event)
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
	h.turn.whileAwaited(ctx, func() {}, func(ctx context.Context) bool {
		result, err = h.Host.Elicit(ctx, f)
		return err == nil && answered(result).Action == apptypes.MCPServerElicitationActionAccept
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return result, err
}

// whileAwaited calls ask for each call that waits for the end of the turn, until ask returns
// true or ctx ends. It calls alone once if no call waits. The context of ask ends with the
// call.
func (r *turn) whileAwaited(ctx context.Context, alone func(), ask func(context.Context) bool) {
	for told := false; ctx.Err() == nil; {
		r.mu.Lock()
		asker, changed := r.elsewhere.asker, r.elsewhere.changed
		r.mu.Unlock()
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

// attend makes the call of ctx the one that is asked, until leave is called.
func (r *turn) attend(ctx context.Context) (leave func()) {
	set := func(asker context.Context) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.elsewhere.set(asker)
	}
	set(ctx)
	var nobody context.Context
	return func() { set(nobody) }
}

// set makes the call of a context the one that is asked.
func (e *elsewhere) set(asker context.Context) {
	if e.joined != nil {
		return // which is asked until the end
	}
	e.asker = asker
	close(e.changed)
	e.changed = make(chan struct{})
}

// hear records a turn that another program began. The id may be "", if it is not known yet.
func (t *thread) hear(id string) *turn {
	o := newTurn(context.Background(), t, nil)
	o.elsewhere = &elsewhere{changed: make(chan struct{}), clients: map[string]bool{}}
	o.start.name(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	o.host = &overheard{Host: t.host, turn: o}
	t.other = o
	return o
}

// overhears handles a notification of a turn that another program began. It returns false for
// the notifications of own turns.
func (t *thread) overhears(method, id string, n *apptypes.Note) bool {
	t.mu.Lock()
	r, left, o, heard := t.running, t.left, t.other, t.heard
	t.mu.Unlock()
	if o == nil || o.name() != id {
		switch {
		case r.owns(id), left.owns(id):
			return false
		case heard != nil && heard.name() == id:
			return true // a late one
		case o != nil && t.names(o, id): // it ran when the thread was loaded
		case method != apptypes.NoteTurnStarted:
			return true // of a turn that was not heard from its start
		default:
			o = t.hear(id)
			o.report(protocol.TaskStarted{})
		}
	}
	switch method {
	case apptypes.NoteTurnStarted:
		o.activate()
	case apptypes.NoteTurnCompleted:
		t.heardOut(o, id, n.Turn)
	case apptypes.NoteItemCompleted:
		o.reads(n.Item)
		fallthrough
	default:
		o.translate(method, n)
	}
	return true
}

// names gives a turn that another program began its id, unless it has one or has ended.
func (t *thread) names(o *turn, id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.other != o || o.name() != "" {
		return false
	}
	o.named(id)
	return true
}

// heardOut ends a turn that another program began, unless it has another id by now. The result is nil
// if it is not known.
func (t *thread) heardOut(o *turn, id string, result *apptypes.Turn) {
	t.mu.Lock()
	if t.other != o || o.name() != id {
		t.mu.Unlock()
		return
	}
	t.other, t.heard = nil, o
	o.mu.Lock()
	joined := o.elsewhere.joined // under the lock of t, so that join cannot come between
	o.mu.Unlock()
	t.mu.Unlock()
	o.complete(result)
	var last []protocol.EventMsg
	if joined == nil && result != nil {
		last, _ = o.outcome(nil)
	}
	o.end(last)
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
	client := clientOf(raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.elsewhere.clients[client] = true
	if joined := r.elsewhere.joined; joined == nil || joined.messages.client != client {
		r.host.Emit(m)
	}
}

// clientOf returns the id that a client gave its message.
func clientOf(raw json.RawMessage) string {
	var it apptypes.UserMessage
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
		o.mu.Lock()
		o.elsewhere.set(r.ctx)
		o.elsewhere.joined = r
		o.mu.Unlock()
		t.mu.Unlock()
		r.mu.Lock()
		r.messages.guest = true
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
	tr, result, read := o.tr, o.result, o.elsewhere.clients[r.messages.client]
	o.mu.Unlock()
	r.mu.Lock()
	r.tr, r.messages.prompted, r.messages.guest = tr, read, true
	r.mu.Unlock()
	r.complete(result)
}

// unheard reports whether the turn has ended without having read its prompt, because the
// app-server put the prompt into a turn of another program that was about to end.
func (r *turn) unheard() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &r.messages
	return m.client != "" && m.guest && r.result != nil && !m.prompted && r.aborted == nil
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
		leave := o.attend(ctx)
		select {
		case <-o.completed:
		case <-t.child.end.gone:
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
func (c *conversation) steerElsewhere(ctx context.Context, t *thread, o *turn, input []apptypes.Input) error {
	if err := c.unloosened(t); err != nil {
		return err
	}
	if o.name() == "" {
		return engine.ErrNoTurn
	}
	err := t.child.steer(ctx, &apptypes.SteerParams{ThreadID: t.id, ExpectedTurnID: o.name(), Input: input})
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
	for _, t := range c.threads.loaded {
		t.mu.Lock()
		runs := t.other != nil
		t.mu.Unlock()
		if runs {
			return true
		}
	}
	return false
}
