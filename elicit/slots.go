package elicit

import (
	"context"
	"slices"
	"sync"
)

// slots limits how many questions are open. Further ones wait in order of arrival.
type slots struct {
	mu      sync.Mutex
	free    int
	limited bool
	waiting []chan struct{} // closing one, under mu, hands over a slot
}

// newSlots returns n slots, without a limit if n < 0.
func newSlots(n int) *slots { return &slots{free: n, limited: n >= 0} }

// acquire waits for a slot until ctx ends.
func (s *slots) acquire(ctx context.Context) error {
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
		s.release()
	}
	return ctx.Err()
}

// release hands the slot to the next question that waits.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	close(s.waiting[0])
	s.waiting = slices.Delete(s.waiting, 0, 1)
}
