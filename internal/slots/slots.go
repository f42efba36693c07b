// Package slots bounds how much is done at a time. More work waits instead of failing.
package slots

import "context"

// Slots is as many slots as the channel has room for. Nil does not bound anything.
type Slots chan struct{}

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
