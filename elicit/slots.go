package elicit

import (
	"context"
	"slices"
	"sync"
)

// Slots limit how many questions are open at a time. Further ones wait in order of arrival. They
// are safe for concurrent use.
type Slots struct {
	mu      sync.Mutex
	free    int
	limited bool
	waiting []chan struct{} // closing one, under mu, hands over a slot
}

// NewSlots returns n slots, without a limit if n < 0.
func NewSlots(n int) *Slots { return &Slots{free: n, limited: n >= 0} }

// Waiting returns how many questions wait for a slot.
func (s *Slots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// Acquire waits for a slot until ctx ends. The caller must release it.
func (s *Slots) Acquire(ctx context.Context) error {
	s.mu.Lock()
	if !s.limited || s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	s.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.waiting, turn)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 { // a slot was handed over in the meantime
		s.Release()
	}
	return ctx.Err()
}

// Release hands the slot to the next question that waits.
func (s *Slots) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	close(s.waiting[0])
	s.waiting = slices.Delete(s.waiting, 0, 1)
}
