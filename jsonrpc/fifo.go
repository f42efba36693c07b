package jsonrpc

import "slices"

// fifo is a queue, of requests or of chunks. The zero fifo is empty. It has no lock: that of its
// owner is held.
//
// The queue is items[head:]. A slice that is only cut at the front would grow without end
// while the queue is never empty, so pop moves the rest to the front when half of the array
// is free. That is at most one move for each item on average.
type fifo[T any] struct {
	items []*T
	head  int
}

// maxIdle is the longest array that an empty fifo keeps.
const maxIdle = 1 << 10

func (q *fifo[T]) len() int { return len(q.items) - q.head }

func (q *fifo[T]) push(r *T) { q.items = append(q.items, r) }

// pop takes the oldest off the queue; nil if there is none.
func (q *fifo[T]) pop() *T {
	if q.len() == 0 {
		return nil
	}
	r := q.items[q.head]
	// Otherwise the array would keep it in memory: a request with the line it was read from,
	// a chunk under a Write.
	q.items[q.head] = nil
	if q.head++; 2*q.head >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
		// A flood leaves a long array, which an idle peer must not keep.
		if n == 0 && cap(q.items) > maxIdle {
			q.items = nil
		}
	}
	return r
}

// unpop puts back what pop has returned.
func (q *fifo[T]) unpop(r *T) { q.items = slices.Insert(q.items, q.head, r) }

// last returns the newest; nil if there is none.
func (q *fifo[T]) last() *T {
	if q.len() == 0 {
		return nil
	}
	return q.items[len(q.items)-1]
}
