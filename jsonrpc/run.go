package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// The life of a peer: Run starts the reading, and waits for the first reason to end: the input has
// ended, the transport has failed, Close or Shutdown was called, or the context has ended. Then
// finish lets the peer end in the way that fits the reason, and waits for all goroutines.

var errRunTwice = errors.New("jsonrpc: Run called twice")

// Run reads and handles messages until the connection ends, once. It returns
//   - nil when the other side has ended its input and all that came before has been answered
//     (see [Options].DrainTimeout), or after Close or Shutdown;
//   - [context.Cause] of ctx when ctx ends, and with it the contexts of handlers; what they
//     answer in the following second is still sent;
//   - what went wrong on the transport otherwise.
//
// Calls still pending fail with [ErrClosed], at the end of input at once. As nil is the usual end, do not pass it to
// log.Fatal.
func (p *Peer) Run(ctx context.Context) error {
	p.mu.Lock()
	// Decided under one lock: of two calls of Run one is refused, and a Run after Close
	// starts nothing.
	switch {
	case p.life.running:
		p.mu.Unlock()
		return errRunTwice
	case p.life.ending:
		p.mu.Unlock()
		return nil
	}
	p.life.running = true
	p.ctx.base, p.ctx.endBase = context.WithCancelCause(ctx) // before the reader starts, which uses it without a lock
	p.mu.Unlock()

	// The writer first: the first message may be answered at once.
	p.out.start()
	go p.read()
	select {
	case <-p.life.woken:
	case <-ctx.Done():
	}
	return p.finish(ctx)
}

// wake lets Run end the peer. It may be called by any goroutine, several times, and before Run. The
// caller must have recorded its reason before: finish looks for it once and does not wait for one.
func (p *Peer) wake() { p.life.wakeOnce.Do(func() { close(p.life.woken) }) }

// finish brings the peer to its end.
func (p *Peer) finish(ctx context.Context) error {
	err := p.untilEnd(ctx)
	// Contexts first, so that blocked handlers return while Close waits for a child
	// process or the other side.
	p.ctx.endBase(ErrClosed)
	closeErr := p.disconnect()
	p.waitAll()
	if err == nil {
		err = p.verdict(closeErr)
	}
	p.life.result = err // before done: a goroutine that has seen Done may use Err
	close(p.life.done)
	return err
}

// verdict returns why the peer ended, nil if that was in good order. A connection that broke
// comes before an error of closing it, which may explain it.
func (p *Peer) verdict(closeErr error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.life.err != nil && closeErr != nil && !errors.Is(closeErr, os.ErrClosed):
		return fmt.Errorf("%w (%w)", p.life.err, closeErr) // a broken pipe, because the child has exited
	case p.life.err != nil:
		return p.life.err
	case p.life.wanted || errors.Is(closeErr, os.ErrClosed):
		return nil
	}
	return closeErr
}

// untilEnd returns when the connection has broken or has been brought to an
// orderly end, with the cause if that was ctx.
//
// Of several reasons the hardest counts: after a failure nothing can be sent, so nothing is
// waited for. The end of the input comes before Shutdown, because no request can follow that
// would have to be refused.
func (p *Peer) untilEnd(ctx context.Context) error {
	p.mu.Lock()
	inputEnd, shutdown := p.life.inputEnd, p.life.shutdown
	p.mu.Unlock()
	switch {
	// Close was called, or the transport failed. broke has recorded a failure.
	case p.ctx.live.Err() != nil:
		return nil
	// The other side has ended its input.
	case inputEnd:
		if p.drain(ctx, p.o.DrainTimeout) {
			return nil
		}
		// Out of time. The handlers learn it from their contexts, and may still answer. If ctx
		// has ended, theirs are ending with its cause, which must not come second.
		cause := error(ErrClosed)
		if ctx.Err() != nil {
			cause = context.Cause(ctx)
		}
		p.ctx.endBase(cause)
		p.settle(p.ctx.live, leaveBehind)
		return context.Cause(ctx)
	// No limit but the caller's: Shutdown closes the connection when its context ends.
	case shutdown:
		p.refuseNew()
		settled := p.drain(ctx, 0)
		if ctx.Err() == nil {
			return nil
		}
		if settled {
			return context.Cause(ctx)
		}
	// ctx has ended. Handlers get the grace to answer, but new requests would extend it.
	default:
		p.refuseNew()
	}
	p.settle(p.ctx.live, leaveBehind)
	return context.Cause(ctx)
}

// drain is settle until ctx ends, too.
func (p *Peer) drain(ctx context.Context, limit time.Duration) bool {
	until, stop := context.WithCancel(p.ctx.live)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	return p.settle(until, limit)
}

// settle waits, for the limit if there is one, until everything accepted is
// answered and everything queued is written.
func (p *Peer) settle(ctx context.Context, limit time.Duration) bool {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	// In this order: a handler queues its answer before it counts as finished.
	return p.waitIdle(ctx) == nil && p.out.flush(ctx) == nil
}

// refuseNew makes admit refuse requests. Notifications and answers are still accepted, since
// running handlers may wait for them.
func (p *Peer) refuseNew() {
	p.mu.Lock()
	p.in.refusing = true
	p.mu.Unlock()
}

// waitAll waits for all goroutines of the peer, but not forever for a handler that
// ignores its context or a transport that Close does not unblock.
func (p *Peer) waitAll() {
	// In a goroutine of its own, which is left behind with those that do not return.
	gone := make(chan struct{})
	go func() {
		<-p.unread // first: until the reader has returned it may start a handler
		p.out.writers.Wait()
		p.handlers.Wait()
		close(gone)
	}()
	timer := time.NewTimer(leaveBehind)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
		p.problem(errors.New("goroutines left behind at the end"), nil)
	}
}

// broke records why the connection broke, unless it was ended on purpose.
func (p *Peer) broke(err error) {
	p.mu.Lock()
	// The first error is the reason. Later ones follow from it.
	if !p.life.ending && p.life.err == nil {
		p.life.err = err
	}
	// Outside the lock: completing calls logs.
	p.mu.Unlock()
	// Before live ends, so that callers get this error and not a bare ErrClosed.
	p.failCalls(fmt.Errorf("%w: %w", ErrClosed, err))
	// Ends the waiting of finish, and of senders that wait for room.
	p.ctx.endLive()
	p.wake()
}

// Close ends the connection at once: pending calls fail with [ErrClosed], handlers' contexts end,
// the queue is lost. It returns the transport's error. A client whose calls have returned may Close; one that has
// sent notifications, or whose handlers still work, uses [Peer.Shutdown].
func (p *Peer) Close() error {
	p.mu.Lock()
	// A peer that never ran has no Run to close done.
	if !p.life.running && !p.life.ending {
		close(p.life.done)
	}
	// Recorded before the transport is closed, which makes Read and Write fail: broke must
	// not take these errors for the reason.
	p.life.ending, p.life.wanted = true, true
	p.mu.Unlock()
	return p.disconnect()
}

// disconnect ends everything that touches the wire.
func (p *Peer) disconnect() error {
	// Close, Shutdown and Run may all come here; the transport is closed once, and all
	// get its error.
	p.life.closeOnce.Do(func() {
		p.mu.Lock()
		p.life.ending = true
		p.mu.Unlock()
		// The transport last: its errors must not look like the reason of the end.
		p.out.close(ErrClosed) // first: a handler whose call fails could still send its answer
		p.failCalls(ErrClosed)
		p.endInbound()
		p.ctx.endLive()
		p.wake()
		p.life.closeErr = p.t.Close()
		// A Read or Write that ignored Close still sees its context end.
		p.ctx.endConn()
	})
	return p.life.closeErr
}

// Shutdown ends the connection in an orderly way: new requests are refused with CodeOverloaded,
// those being handled are answered, what is queued is written. It returns nil when the peer has
// ended; when ctx ends first, it closes the connection and returns ctx.Err(). A handler must not
// call it.
func (p *Peer) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	running := p.life.running
	p.life.wanted, p.life.shutdown = true, true
	p.mu.Unlock()
	// Without Run nothing would close done.
	if !running {
		return p.Close()
	}
	p.wake()
	select {
	case <-p.life.done:
		return nil
	case <-ctx.Done():
		// Close ends the waiting of finish. The caller gets ctx.Err() rather than the error of
		// Close: it has to know that requests were cut off.
		_ = p.Close()
		<-p.life.done
		return ctx.Err()
	}
}
