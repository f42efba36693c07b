package native

import "context"

// slots bound the work that needs file descriptors or threads. More work waits instead of failing.
type slots chan struct{}

// newSlots returns n slots, at least least and at most most.
func newSlots(n, least, most int) slots { return make(slots, min(max(n, least), most)) }

// take waits for a slot, until leave is called. It fails with the context's cause.
func (s slots) take(ctx context.Context) (leave func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
