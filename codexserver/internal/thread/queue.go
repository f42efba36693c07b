package thread

import (
	"context"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
)

// queue is a lock that turns get in the order in which they joined: the first one holds it. Thread.mu guards the
// queue, and what its seats say but for the channels.
type queue []*seat

// seat is the place of a turn in the queue.
type seat struct {
	turn   *turn.Turn    // nil for the closing of the thread
	first  chan struct{} // closed when it is the first
	left   chan struct{} // closed when it has left the queue
	begun  bool          // the turn has the thread
	number int           // of the turn in its thread; 0 before it has begun
}

// join adds a turn, or nil for the closing of the thread, to the queue, without waiting.
func (t *Thread) join(now *turn.Turn) *seat {
	q := &seat{turn: now, first: make(chan struct{}), left: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, q)
	t.idle.Reset(idleLimit)
	if len(t.queue) == 1 {
		close(q.first)
	}
	return q
}

// running returns the turn that has the thread, or nil.
func (q queue) running() *seat {
	if len(q) > 0 && q[0].begun {
		return q[0]
	}
	return nil
}

// take waits until a seat is the first, and gives the thread to its turn. It fails if the thread is closed, or, with the
// cause, if ctx ends before.
func (t *Thread) take(ctx context.Context, q *seat) error {
	select {
	case <-q.first:
	case <-ctx.Done():
		select {
		case <-q.first:
		default:
			return context.Cause(ctx)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed
	}
	q.begun = q.turn != nil
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
	if i == 0 && len(t.queue) > 0 {
		close(t.queue[0].first)
	}
}
