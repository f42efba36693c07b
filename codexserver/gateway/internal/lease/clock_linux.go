package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns the time since the machine was started. Unlike Go's monotonic clock it goes
// on while the machine is suspended.
func sinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // every kernel that Go supports has it
	return time.Duration(t.Nano())
}
