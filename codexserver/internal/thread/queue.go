package thread

import (
	"context"
	"slices"
)

// queue is a lock that tickets get in the order in which they were taken: the first one holds it.
// Thread.mu guards the queue and what its tickets say.
type queue []*Ticket

// Ticket is a place in a thread's queue of turns.
type Ticket struct {
	thread *Thread
	first  chan struct{} // closed when the ticket is the first
	left   chan struct{} // closed when the ticket has left the queue

	closes bool  // it is for closing the thread, not for a turn
	begun  bool  // its turn has begun
	cause  error // why the turn was interrupted before it began
}

// join takes the last ticket, without waiting. Closes is true for closing the thread.
func (t *Thread) join(closes bool) *Ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	ticket := &Ticket{thread: t, first: make(chan struct{}), left: make(chan struct{}), closes: closes}
	t.queue = append(t.queue, ticket)
	t.idle.Reset(idleLimit)
	if len(t.queue) == 1 {
		close(ticket.first)
	}
	return ticket
}

// next returns the first ticket whose turn has not begun, or nil. The caller holds the
// thread's mutex. A ticket before it may belong to a turn that has ended and not yet left.
func (q queue) next() *Ticket {
	for _, t := range q {
		if !t.begun {
			return t
		}
	}
	return nil
}

// wait waits until the ticket is the first. If ctx ends before, it returns the cause. The
// caller must call Leave in any case.
func (t *Ticket) wait(ctx context.Context) error {
	select {
	case <-t.first:
		return nil
	default:
	}
	select {
	case <-t.first:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave removes the ticket from the queue. A turn does so at its end.
func (t *Ticket) Leave() {
	th := t.thread
	th.mu.Lock()
	defer th.mu.Unlock()
	i := slices.Index(th.queue, t)
	if i < 0 {
		return
	}
	th.queue = slices.Delete(th.queue, i, i+1)
	close(t.left)
	if !th.closed {
		th.idle.Reset(idleLimit)
	}
	if i == 0 && len(th.queue) > 0 {
		close(th.queue[0].first)
	}
}
