package thread

import (
	"context"
	"slices"
)

// queue is a lock that turns get in the order in which they joined: the first one holds it. Thread.mu guards the
// queue, and what its seats say but for the channels.
type queue []*seat

// seat is the place of a turn in the queue, with who attends it, or that of the closing of the thread.
type seat struct {
	Attend
	closing bool          // without a turn
	first   chan struct{} // closed when it is the first
	left    chan struct{} // closed when it has left the queue

	begun   bool         // the turn has the thread
	id      string       // of the turn
	number  int          // of the turn in its thread; 0 before it has begun
	metrics TurnObserver // of the turn, or nil
	checks  checks
}

// join adds a seat to the queue, without waiting.
func (t *Thread) join(q *seat) *seat {
	q.first, q.left = make(chan struct{}), make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, q)
	t.idle.Reset(idleLimit)
	if len(t.queue) == 1 {
		t.lead(q)
	}
	return q
}

// lead makes a seat the first. The caller holds t.mu.
func (t *Thread) lead(q *seat) {
	t.first.Store(q)
	close(q.first)
}

// running returns the turn that has the thread, or nil.
func (q queue) running() *seat {
	if len(q) > 0 && q[0].begun {
		return q[0]
	}
	return nil
}

// take waits until a seat is the first. It fails if the thread is closed, or, with the
// cause, if ctx ends before.
func (t *Thread) take(ctx context.Context, q *seat) error {
	select {
	case <-q.first:
	case <-ctx.Done():
		if t.first.Load() != q {
			return context.Cause(ctx)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed
	}
	return nil
}

// leave removes a turn from the queue.
func (t *Thread) leave(q *seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.queue, q)
	t.queue = slices.Delete(t.queue, i, i+1)
	close(q.left)
	if !t.closed {
		t.idle.Reset(idleLimit)
	}
	switch {
	case i > 0:
	case len(t.queue) > 0:
		t.lead(t.queue[0])
	default:
		t.first.Store(nil)
	}
}
