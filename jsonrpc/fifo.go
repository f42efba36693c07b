package jsonrpc

// fifo is a queue of requests. The zero fifo is empty. It has no lock: inbound's is held.
//
// The queue is items[head:]. A slice that is only cut at the front would grow without end
// while the queue is never empty, so pop moves the rest to the front when half of the array
// is free. That is at most one move for each request on average.
type fifo struct {
	items []*Request
	head  int
}

// maxIdle is the longest array that an empty fifo keeps.
const maxIdle = 1 << 10

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) push(r *Request) { q.items = append(q.items, r) }

// pop takes the oldest off the queue; nil if there is none.
func (q *fifo) pop() *Request {
	if q.len() == 0 {
		return nil
	}
	r := q.items[q.head]
	// Otherwise the array would keep the request, and the line it was read from, in
	// memory.
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

// take takes those off the queue that which chooses, and hands them to f in
// their order.
func (q *fifo) take(which func(*Request) bool, f func(*Request)) {
	n := 0
	for _, r := range q.items[q.head:] {
		if which(r) {
			f(r)
		} else {
			q.items[n] = r
			n++
		}
	}
	// The requests behind n were moved or taken; see pop.
	clear(q.items[n:])
	q.items, q.head = q.items[:n], 0
}
