package elicit

import (
	"context"
	"sync/atomic"
)

// Slots limit how many questions are open at a time. Further ones wait in order of arrival. They
// are safe for concurrent use.
type Slots struct {
	taken   chan struct{} // nil without a limit
	waiting atomic.Int32
}

// NewSlots returns n slots, without a limit if n < 0.
func NewSlots(n int) *Slots {
	if n < 0 {
		return new(Slots)
	}
	return &Slots{taken: make(chan struct{}, n)}
}

// Waiting returns how many questions wait for a slot.
func (s *Slots) Waiting() int { return int(s.waiting.Load()) }

// Acquire waits for a slot until ctx ends. The caller must release it.
func (s *Slots) Acquire(ctx context.Context) error {
	if s.taken == nil {
		return nil
	}
	select {
	case s.taken <- struct{}{}:
		return nil
	default:
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case s.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release hands the slot to the next question that waits.
func (s *Slots) Release() {
	if s.taken != nil {
		<-s.taken
	}
}
