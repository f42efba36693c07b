package thread

import (
	"context"
	"sync"
)

// queue is a lock that is handed on in the order in which tickets were taken.
// The zero queue is free.
type queue struct {
	mu      sync.Mutex
	tickets []*Ticket // the first one holds the lock
}

// Ticket is a place in a thread's queue of turns.
type Ticket struct {
	queue *queue
	first chan struct{} // closed when the ticket is the first
	left  chan struct{} // closed when it was given up

	// Guarded by Thread.mu.
	closes bool  // it is for the thread's end, not for a turn
	begun  bool  // its turn has
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

// next returns the first ticket whose turn has not begun, nil when there is none.
// The thread's mutex is held. A ticket before it may be of a turn that has ended
// and is about to leave.
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

// wait waits to be the first. When ctx ends before that it returns the cause;
// the ticket must still be left.
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

// leave returns the ticket unused.
func (t *Ticket) leave() {
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
