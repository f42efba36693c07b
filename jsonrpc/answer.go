package jsonrpc

import (
	"bytes"
	"context"
	"errors"
)

// An answer is claimed, encoded and delivered, in this order and by one goroutine. Claiming
// settles under the peer's lock which of several answers is sent. Encoding may run code of
// others. Delivering queues the answer, and only then ends the
// request's context, frees its place and counts it as finished.

// place is where an answer is sent from. It decides who may write the answer, see writer.
type place uint8

const (
	onHandler  place = iota // the goroutine of the handler, which has nothing else to do
	onReadLoop              // which must not wait
	elsewhere               // any other goroutine
)

// answer answers a request, unless it was cancelled and its profile wants no
// answer then. It returns errAnswered if another was first, and what send returns if the answer is lost.
func (p *Peer) answer(r *Request, v any, err error, from place) error {
	if r.IsNotification() {
		return nil
	}
	in := &p.in
	// Claimed before it is encoded: a Reply, the return of the handler and a panic may
	// all come here, and only the first is sent. The id is free from now on, because the
	// other side may reuse it once it has read the answer.
	p.mu.Lock()
	switch {
	case r.answered:
		p.mu.Unlock()
		return errAnswered
	// The handler has left the answer to a Responder.
	case r.detached && from != elsewhere:
		// The reader did not wait for a free place. A request that stays takes one now, beyond the limit if none is free.
		if from == onReadLoop {
			in.running++
			in.keep(r)
		}
		p.mu.Unlock()
		return nil
	}
	r.answered = true
	delete(in.inflight, r.ID)
	// Kept requests do not count for alone: their handlers have returned, so they may not
	// answer for a long time.
	cancelled, alone := r.cancelled, in.running-in.kept+in.waiting.len() <= 1
	p.mu.Unlock()
	c, w := answer, ifPrompt
	switch {
	case from == onReadLoop:
		c = regardless // waiting for room would be waiting for the other side to read, which may wait for us
		if p.more != nil && p.more() {
			w, p.gathers = gathered, true
		}
	// If other handlers run, their answers may come soon, and the writer sends several with one write where
	// a Write waits.
	case from == onHandler && alone:
		w = bySender
	}
	if cancelled && !p.cancel.Answer {
		(*requestContext)(r).end(ErrCancelled) // the cancellation does this too, but maybe after deliver
		return p.deliver(r, nil, c, w)
	}
	if cancelled && err != nil {
		err = Errorf(CodeRequestCancelled, "request cancelled")
	}
	return p.encodeAnswer(r, v, err, c, w)
}

// deliver sends an answer, nil for none, and ends the request. The order of its steps matters,
// as each says.
func (p *Peer) deliver(r *Request, b *bytes.Buffer, c class, w writer) (lost error) {
	// The answer is queued before the context ends: what a handler sends because of that
	// end comes after the answer.
	if b != nil || r.batch != nil {
		lost = p.post(r.batch, b, c, w)
	}
	// The context ends in any case, or what the handler derived from it would leak.
	(*requestContext)(r).end(context.Canceled)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.kept { // settled when answered was set
		p.in.kept--
		p.in.running--
		p.start()
	}
	// Last: the end of the connection waits for this and then flushes the queue, where it
	// must find the answer.
	p.in.retire(1)
	return lost
}

// encodeAnswer encodes the response and delivers it. Results and errors may run code of
// their own (MarshalJSON, Error, As). If that panics, only this request fails; if it ends
// the goroutine, the request is still answered, because it has been claimed.
func (p *Peer) encodeAnswer(r *Request, v any, err error, c class, w writer) (lost error) {
	b := getBuffer()
	finished := false
	defer func() {
		// Here in any case, so that a request that was claimed is always delivered.
		if !finished {
			// What was encoded so far is half an answer.
			what := recover() // nil if the goroutine is being ended
			b.Reset()
			p.writeError(b, r.ID, &Error{Code: CodeInternalError,
				Message: "internal error: encoding the answer panicked"})
			if what != nil {
				p.panicked(r, what)
			}
		}
		lost = p.deliver(r, b, c, w)
	}()
	p.writeAnswer(b, r, v, err)
	finished = true
	return nil
}

// writeAnswer encodes a result, or an error if that fails: the caller on the other side learns
// that its request was handled, and the reason stays here.
func (p *Peer) writeAnswer(b *bytes.Buffer, r *Request, v any, err error) {
	if err == nil {
		if err = p.writeResult(b, r.ID, v); err == nil {
			return
		}
		b.Reset()
		p.problem(err, nil)
		err = Errorf(CodeInternalError, "the result of %s cannot be encoded", r.Method)
	}
	p.writeError(b, r.ID, asError(err))
}

// abandon answers a request whose handler ended its goroutine. It runs in the deferred calls of
// that goroutine, which may still block and call the peer.
func (p *Peer) abandon(r *Request, err error) {
	if r.IsNotification() {
		p.noteDone(r, err)
		return
	}
	_ = p.answer(r, nil, Errorf(CodeInternalError, "internal error: %v", err), onHandler)
}

// refuse answers a message that never became a request. It was never registered, so nothing
// else can answer it. The reader calls it and must not wait: the answer is queued regardless
// of the limit, and written by the writer.
func (p *Peer) refuse(of *batch, id ID, e *Error) {
	b := getBuffer()
	p.writeError(b, id, e)
	_ = p.post(of, b, regardless, byWriter)
}

// post sends an answer, or those of a batch with the last of them; nil is no answer. The end of
// the connection is not a problem to report. It returns what send returns, and ErrClosed if the
// batch can no longer leave.
func (p *Peer) post(of *batch, b *bytes.Buffer, c class, w writer) error {
	if of != nil {
		if b = p.hold(of, b); b == nil {
			return p.out.closed()
		}
	}
	// Bounded by the connection, not by the request: the answer is due even if the
	// request's context has ended.
	err := p.send(p.ctx.live, b, c, w)
	if err != nil && !errors.Is(err, ErrClosed) {
		p.problem(err, nil)
	}
	return err
}
