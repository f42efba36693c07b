package native

import "context"

// slots bound how much an engine does at once of what takes descriptors: more of it
// waits instead of failing.
type slots chan struct{}

// newSlots returns so many slots, at least least and at most most.
func newSlots(n, least, most int) slots { return make(slots, min(max(n, least), most)) }

// take waits for a slot. The error is the context's cause.
func (s slots) take(ctx context.Context) (leave func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
