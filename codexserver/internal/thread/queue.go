package thread

import (
	"context"
	"slices"
)

// queue is a lock that turns get in the order in which they joined: the first one holds it. Thread.mu guards the
// queue and what its turns say.
type queue []*Turn

// join adds a turn, or the closing of the thread, to the queue, without waiting.
func (t *Thread) join(q *Turn) *Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	q.thread, q.first, q.left = t, make(chan struct{}), make(chan struct{})
	t.queue = append(t.queue, q)
	t.idle.Reset(idleLimit)
	if len(t.queue) == 1 {
		close(q.first)
	}
	return q
}

// next returns the first turn that has not begun, or nil. The caller holds the thread's mutex. A turn before
// it may have ended and not yet left.
func (q queue) next() *Turn {
	for _, t := range q {
		if !t.begun {
			return t
		}
	}
	return nil
}

// wait waits until the turn is the first. If ctx ends before, it returns the cause. The caller must call Leave in
// any case.
func (q *Turn) wait(ctx context.Context) error {
	select {
	case <-q.first:
		return nil
	default:
	}
	select {
	case <-q.first:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave removes the turn from the queue. Run does so at its end.
func (q *Turn) Leave() {
	t := q.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.queue, q)
	if i < 0 {
		return
	}
	t.queue = slices.Delete(t.queue, i, i+1)
	close(q.left)
	if !t.closed {
		t.idle.Reset(idleLimit)
	}
	if i == 0 && len(t.queue) > 0 {
		close(t.queue[0].first)
	}
}
