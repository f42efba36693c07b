package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// The life of a request: dispatch makes it, admit registers it under its id, and it waits in
// queue or waiting if it must. Then it takes a place, one of MaxConcurrent, and serve handles
// it. answer removes the id, deliver sends the answer, and with finished it is no longer
// active. The place becomes free when the handler has returned, or, if it has left the answer
// to a Responder, with the answer.
//
// A notification has neither an id nor a place: it waits in queue, ordered handles it, and
// with finished it is no longer active.

// inbound holds what the other side wants from us.
//
// One goroutine handles notifications one by one, in order of arrival; it exists while
// there are any. A request that arrives meanwhile queues behind them, and that goroutine
// starts it without waiting for it. Otherwise the read loop starts the request at once.
type inbound struct {
	inflight map[ID]*Request // accepted and not answered

	// A request in queue waits for the notifications before it, even if a place is free. A
	// request in waiting waits for a place or a goroutine, and does not delay the notifications after it.
	queue   fifo[Request] // notifications, and requests behind them
	waiting fifo[Request] // requests that start in this order, see start

	ordering bool // the ordered goroutine exists; it clears this with its last look at queue
	starting bool // a goroutine for what is in waiting was started and has not begun

	// A request in running is either being handled or kept.
	running int // requests that hold one of MaxConcurrent places
	kept    int // those of running whose handler has returned and left the answer to a Responder

	// active is what the end waits for. It counts a request until its answer is queued, not
	// only until its handler returns: after active has fallen to 0 a flush writes all answers.
	active int // accepted and not finished: requests and notifications

	// bytes counts only what waits. What is being handled is bounded by running.
	bytes int // size of queue and waiting

	refusing bool          // the peer is shutting down
	ended    bool          // no handler starts any more
	idle     chan struct{} // closed when active falls to 0; nil if nothing waits for that
}

// receive takes one message from the transport. It never blocks.
func (p *Peer) receive(line []byte) {
	if h := p.o.Hooks; h != nil && h.Received != nil {
		h.Received(line)
	}
	// On the stack: kept in the peer, its slices would hold the line until the next one
	// comes.
	var m message
	m.parse(line, p.d)
	if m.array && p.o.Batches != nil && p.o.Batches() {
		p.receiveBatch(line)
		return
	}
	p.dispatch(&m, line, nil)
}

// dispatch acts on one scanned message of a batch, or of none.
func (p *Peer) dispatch(m *message, line []byte, b *batch) {
	switch m.kind {
	case kindRequest:
		r := p.newRequest(m, line)
		r.batch = b
		p.expect(b)
		p.accept(r)
	case kindNotification:
		// A cancel notification does not queue: the handler it should end may be the one
		// that the queue waits for.
		if c := p.cancel; c != nil && string(m.method) == c.Method {
			p.cancelInbound(c, m.params, line)
			return
		}
		p.accept(p.newRequest(m, line))
	// Never queued: the handler of a notification may wait for it.
	case kindResponse:
		if !p.resolve(m) {
			p.problem(fmt.Errorf("answer with id %s, %w", m.id, ErrNoCall), line)
		}
	// A broken notification or response. An answer to it could be taken for one to a request.
	case kindIgnored:
		p.problem(m.fault, line)
	case kindEmpty:
		if p.resolve(m) {
			return
		}
		fallthrough
	// kindInvalid: the sender may wait for an answer, so it gets one.
	default:
		p.problem(m.fault, line)
		p.expect(b)
		p.refuse(b, m.id, m.fault)
	}
}

// overhead is what a waiting request costs in addition to its bytes.
const overhead = 256

// newRequest makes the request of a message.
func (p *Peer) newRequest(m *message, line []byte) *Request {
	// The whole line counts, because Params is a slice of it and keeps it in memory.
	return &Request{ID: m.id, Method: p.intern(m.method), Params: m.params, peer: p, size: len(line) + overhead}
}

// intern returns the name of a method, allocated once while the same one comes again. Only the
// reader calls it.
func (p *Peer) intern(name []byte) string {
	if string(name) == p.method {
		return p.method
	}
	m := string(name)
	if len(m) <= maxMethod {
		p.method = m
	}
	return m
}

// maxMethod is the longest name of a method that an idle peer keeps.
const maxMethod = 64

// accept admits a request or notification and has it handled.
//
// It decides under one hold of the lock whether the request is admitted, whether it has
// to wait, and for what. Between these decisions nothing may end a request or add one: it would
// then start out of order, or wait although nothing is left to start it.
func (p *Peer) accept(r *Request) {
	inline := p.o.Inline != nil && p.o.Inline(r)
	in := &p.in
	p.mu.Lock()
	// Nothing can be sent any more, so a refusal would be lost too.
	if in.ended {
		p.mu.Unlock()
		return
	}
	// A request may not pass a notification that arrived before it. It starts at once
	// only if no notification is unfinished.
	behind := !inline && (in.ordering || r.IsNotification())
	// Inline requests take no place and no room in the queue: each is handled before the next message is read.
	wait := behind || !inline && in.running+in.waiting.len() >= p.o.MaxConcurrent
	if e := p.admit(r, wait); e != nil {
		p.mu.Unlock() // the answer takes the lock of the egress, and calls hooks
		p.reject(r, e)
		return
	}
	switch {
	case inline:
		p.mu.Unlock()
		p.handleInline(r)
		return
	case behind:
		in.queue.push(r)
		// The ordered goroutine clears ordering under this lock when the queue is empty.
		// So either it sees what was pushed here, or a new goroutine does.
		if !in.ordering {
			in.ordering = true
			p.handlers.Go(p.ordered)
		}
	// Nothing more has arrived, for which alone the reader would go on, see read.
	case !wait && p.more != nil && r.batch == nil && !p.more():
		in.running++
		p.handlers.Add(1)
		p.mine = r
	default:
		in.waiting.push(r)
		p.start()
	}
	p.mu.Unlock()
}

// admit registers the request, or returns why it is refused. The lock is held.
func (p *Peer) admit(r *Request, wait bool) *Error {
	in := &p.in
	// Only what waits is bounded by size. What starts at once is bounded by
	// MaxConcurrent. A message that is as long as one may be passes when nothing else waits.
	if wait && in.bytes > 0 && in.bytes+r.size > p.o.MaxMessage {
		return Errorf(CodeOverloaded, "overloaded: too much is waiting to be handled")
	}
	if !r.IsNotification() {
		// At the end, what was accepted before is finished, and nothing is added to it.
		// Notifications are still accepted: they need no answer, and running handlers may
		// depend on them.
		if in.refusing {
			return Errorf(CodeOverloaded, "shutting down")
		}
		// The running request keeps the id. The other side could not distinguish two
		// answers with one id.
		if _, dup := in.inflight[r.ID]; dup {
			return Errorf(CodeInvalidRequest, "id %s is already in use", r.ID)
		}
		in.inflight[r.ID] = r
	}
	if !wait {
		r.size = 0
	}
	in.bytes += r.size
	in.active++
	return nil
}

// reject answers a request that was not admitted, or reports the loss of a
// notification.
func (p *Peer) reject(r *Request, e *Error) {
	// A notification has no answer in which its sender could see the loss. So it is reported on
	// this side.
	if r.IsNotification() {
		p.problem(fmt.Errorf("notification %s dropped: %w", r.Method, e), nil)
		return
	}
	p.refuse(r.batch, r.ID, e)
}

// handleInline handles a request or notification on the goroutine that has read it. It
// overtakes what waits, which is why only what Options.Inline chooses comes here.
func (p *Peer) handleInline(r *Request) {
	v, err := p.call(r)
	if r.IsNotification() {
		p.noteDone(r, err)
		return
	}
	_ = p.answer(r, v, err, onReadLoop)
}

// keep lets a request whose handler has returned hold its place until it is answered. The
// lock is held.
func (in *inbound) keep(r *Request) {
	r.kept = true
	in.kept++
}

// ordered handles notifications, and starts the requests among them, until
// none is left.
func (p *Peer) ordered() {
	over := false
	defer func() {
		// A handler has ended this goroutine with runtime.Goexit. ordering is still set, so
		// accept starts no other one, and the queue would never be handled.
		if !over {
			p.handlers.Go(p.ordered)
		}
	}()
	in := &p.in
	for {
		p.mu.Lock()
		r := in.queue.pop()
		switch {
		// The last look at the queue and the clearing of ordering are one step, see
		// accept.
		case r == nil:
			in.ordering = false
			over = true
			p.mu.Unlock()
			return
		// The notifications before it have been handled.
		case !r.IsNotification():
			// Started and not handled: its handler may take long, and the next
			// notification must not wait for it.
			in.waiting.push(r)
			p.start()
			p.mu.Unlock()
		default:
			in.bytes -= r.size
			p.mu.Unlock()
			// On this goroutine, so the next one starts when this one has returned.
			_, err := p.call(r)
			p.noteDone(r, err)
		}
	}
}

// start sees to it that a goroutine for what waits has been started and has not begun, if there is a place. The
// lock is held.
//
// A goroutine starts the next one before it handles a request, and takes another request after it. So none
// waits for a handler, and many short requests that arrive at once need few goroutines. With one for
// each, 64 callers take 1.2 times as long in memory, and 1.3 times between processes on one core.
func (p *Peer) start() {
	in := &p.in
	if !in.starting && in.waiting.len() > 0 && in.running < p.o.MaxConcurrent {
		in.starting = true
		p.handlers.Add(1)
		go p.work()
	}
}

// work is the goroutine that start starts.
func (p *Peer) work() {
	defer p.handlers.Done()
	p.mu.Lock()
	p.in.starting = false
	r := p.take() // nil if another goroutine was faster
	p.mu.Unlock()
	p.serve(r)
}

// serve handles a request that has a place, nil for none, and then those that wait.
func (p *Peer) serve(r *Request) {
	defer func() {
		// The handler has ended this goroutine with runtime.Goexit. Another one goes on.
		if r != nil {
			p.mu.Lock()
			p.in.leave(r)
			p.start()
			p.mu.Unlock()
		}
	}()
	for r != nil {
		p.handle(r)
		p.mu.Lock()
		p.in.leave(r)
		r = p.take()
		p.mu.Unlock()
	}
}

// leave gives up the place of a request whose handler has returned, unless the request keeps it. The lock
// is held.
func (in *inbound) leave(r *Request) {
	// Both flags under one lock: a Reply either came before and the place is free, or it
	// finds kept set and gives up the place.
	if r.detached && !r.answered {
		in.keep(r)
		return
	}
	in.running--
}

// take gives a place to the request that has waited longest; nil if there is none, or no place. The lock is
// held, since when a place was left: a request that has just arrived cannot overtake.
func (p *Peer) take() (r *Request) {
	in := &p.in
	if in.running < p.o.MaxConcurrent {
		if r = in.waiting.pop(); r != nil {
			in.running++
			in.bytes -= r.size
		}
	}
	p.start()
	return r
}

// handle runs the handler of a request and answers it.
func (p *Peer) handle(r *Request) {
	// A cancellation after this look ends the context of the handler, which then runs to
	// its end.
	p.mu.Lock()
	ended, cancelled := p.in.ended, r.cancelled
	p.mu.Unlock()
	switch {
	case ended: // before it began
		p.finished()
		return
	case cancelled: // before it began
		_ = p.answer(r, nil, CodeRequestCancelled, onHandler)
		return
	}
	v, err := p.call(r)
	_ = p.answer(r, v, err, onHandler)
}

var errGoexit = errors.New("handler ended its goroutine")

// call runs the handler. A panic fails this request alone: it is recovered here, on the
// goroutine of the handler. A panic on a goroutine that the handler has started ends the
// program, as in any other package.
func (p *Peer) call(r *Request) (v any, err error) {
	// recover returns nil both without a panic and for runtime.Goexit, so a flag
	// distinguishes them.
	finished := false
	defer func() {
		if finished {
			return
		}
		v, err = nil, &Error{Code: CodeInternalError, Message: "internal error: the handler panicked"}
		// A detached request would otherwise wait for a Reply that may not come.
		p.mu.Lock()
		r.detached = false
		p.mu.Unlock()
		what := recover()
		if what == nil {
			// runtime.Goexit continues after this; the request must not stay open.
			p.abandon(r, errGoexit)
			return
		}
		p.panicked(r, what)
	}()
	v, err = p.h.ServeRPC((*requestContext)(r), r)
	finished = true
	return v, err
}

// panicked reports a panic of the handler, or of a method of what it has returned.
func (p *Peer) panicked(r *Request, what any) {
	if p.o.Logger != nil {
		p.o.Logger.Error("jsonrpc: handler panicked", "method", r.Method, "panic", fmt.Sprint(what), "stack",
			string(debug.Stack()))
	}
}

// noteDone ends a notification.
func (p *Peer) noteDone(r *Request, err error) {
	if err != nil {
		defer p.finished() // an error's methods may end this goroutine
		if err = p.noteFault(r, err); err != nil {
			p.problem(err, nil)
		}
		return
	}
	p.finished()
}

// noteFault returns what to report about a handler's error, nil for nothing.
// A panic in the error's own methods is reported as the handler's.
func (p *Peer) noteFault(r *Request, err error) error {
	defer func() {
		if what := recover(); what != nil {
			p.panicked(r, what)
		}
	}()
	// Unknown notifications are normal: a newer protocol may have added them.
	if errors.Is(err, CodeMethodNotFound) {
		return nil
	}
	return fmt.Errorf("notification %s: %w", r.Method, err)
}

// finished takes one off the active requests and notifications. It is the last thing that
// happens to each of them, and happens once.
func (p *Peer) finished() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in.retire(1)
}

// retire is finished for n, with the lock held. The end, if it waits, is woken here.
func (in *inbound) retire(n int) {
	if in.active -= n; in.active == 0 && in.idle != nil {
		close(in.idle)
		in.idle = nil
	}
}

// endInbound drops what has not started and refuses everything from now on. Requests that are dropped
// get no answer: the transport is about to be closed. It may be called several times. A
// transport whose Close does not unblock Read keeps delivering; without this
// its messages would be handled after Run has returned.
func (p *Peer) endInbound() {
	in := &p.in
	p.mu.Lock()
	defer p.mu.Unlock()
	in.ended = true
	// Handlers that run remain active; Run waits for them.
	in.retire(in.queue.len() + in.waiting.len())
	in.queue, in.waiting, in.bytes = fifo[Request]{}, fifo[Request]{}, 0
}

// waitIdle returns when nothing is active, or with the error of ctx. More may be accepted after
// that, unless the input has ended or requests are refused.
func (p *Peer) waitIdle(ctx context.Context) error {
	in := &p.in
	p.mu.Lock()
	if in.active == 0 {
		p.mu.Unlock()
		return nil
	}
	// Made on demand: a busy peer falls idle often, and mostly nothing waits for it.
	if in.idle == nil {
		in.idle = make(chan struct{})
	}
	idle := in.idle
	p.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cancelInbound acts on a cancel notification.
func (p *Peer) cancelInbound(c *CancelProfile, params, line []byte) {
	id, reason, ok := c.decode(params)
	if !ok {
		p.problem(errors.New("cancel notification without a valid id"), line)
		return
	}
	// Found by its id, whether it waits, is being handled or is kept. One that waits stays in its
	// queue, and is answered without being handled when its turn comes, see handle.
	in := &p.in
	p.mu.Lock()
	r := in.inflight[id]
	if r == nil || !c.covers(r.Method) {
		p.mu.Unlock()
		return // answered already, which is not a fault
	}
	// Set before the context ends: a handler that returns because of it must find the
	// mark, or it would answer a request that must not be answered.
	r.cancelled = true
	p.mu.Unlock()
	cause := ErrCancelled
	if reason != "" {
		cause = fmt.Errorf("%w: %s", ErrCancelled, reason)
	}
	// Without the lock: this runs the functions that were attached to the context.
	(*requestContext)(r).end(cause)
}
