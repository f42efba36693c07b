// Package slots bounds how much is done at a time. More work waits instead of failing.
package slots

import (
	"context"
	"errors"
)

// Slots is as many slots as the channel has room for. Nil does not bound anything. Who waits gets a slot in order of
// arrival.
type Slots chan struct{}

// New returns n slots, without a bound if n is negative.
func New(n int) Slots {
	if n < 0 {
		return nil
	}
	return make(Slots, n)
}

// Take waits for a slot, until leave is called. It fails with the context's cause.
func (s Slots) Take(ctx context.Context) (leave func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Queue has one slot, and a bounded number that wait for it.
type Queue struct{ places, slot Slots }

// ErrFull means that as many wait for the slot of a [Queue] as may.
var ErrFull = errors.New("too many wait already")

// NewQueue returns a queue in which so many may wait.
func NewQueue(waiting int) *Queue {
	return &Queue{make(Slots, 1+waiting), make(Slots, 1)}
}

// Take is [Slots.Take], but fails with [ErrFull] in place of waiting if too many wait.
func (q *Queue) Take(ctx context.Context) (leave func(), err error) {
	select {
	case q.places <- struct{}{}:
	default:
		return nil, ErrFull
	}
	end, err := q.slot.Take(ctx)
	if err != nil {
		<-q.places
		return nil, err
	}
	return func() { end(); <-q.places }, nil
}
