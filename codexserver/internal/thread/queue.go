package thread

import (
	"context"
	"sync"
)

// queue is a lock that tickets get in the order in which they were taken. The zero queue
// is free.
type queue struct {
	mu      sync.Mutex
	tickets []*Ticket // the first one holds the lock
}

// Ticket is a place in a thread's queue of turns.
type Ticket struct {
	queue *queue
	first chan struct{} // closed when the ticket is the first
	left  chan struct{} // closed when the ticket has left the queue

	// Guarded by Thread.mu.
	closes bool  // it is for closing the thread, not for a turn
	begun  bool  // its turn has begun
	cause  error // why the turn was interrupted before it began
}

// join takes the last ticket, without waiting.
func (q *queue) join() *Ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &Ticket{queue: q, first: make(chan struct{}), left: make(chan struct{})}
	q.tickets = append(q.tickets, t)
	if len(q.tickets) == 1 {
		close(t.first)
	}
	return t
}

// next returns the first ticket whose turn has not begun, or nil. The caller holds the
// thread's mutex. A ticket before it may belong to a turn that has ended and not yet left.
func (q *queue) next() *Ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.tickets {
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
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.tickets {
		if other == t {
			q.tickets = append(q.tickets[:i], q.tickets[i+1:]...)
			close(t.left)
			if i == 0 && len(q.tickets) > 0 {
				close(q.tickets[0].first)
			}
			return
		}
	}
}
