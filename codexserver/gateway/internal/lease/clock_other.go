//go:build !linux

package lease

import "time"

// newClock returns the time since its call.
func newClock() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
