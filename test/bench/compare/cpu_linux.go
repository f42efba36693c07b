package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// cpu returns the CPU time that the server has used, with that of threads that have ended.
func (s *server) cpu() (time.Duration, error) {
	const scheduler = 2 // the kind of clock, see clock_getcpuclockid(3)
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^s.cmd.Process.Pid)<<3|scheduler, &used); err != nil {
		return 0, fmt.Errorf("the server's CPU time: %w", err)
	}
	return time.Duration(used.Nano()), nil
}
