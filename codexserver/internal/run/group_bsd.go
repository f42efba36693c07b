//go:build unix && !linux

package run

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

func terminateGroup(leader int) { _ = unix.Kill(-leader, unix.SIGTERM) }

// killGroup kills the group of leader and waits until it is empty.
func killGroup(leader int) {
	_ = unix.Kill(-leader, unix.SIGKILL)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(killGrace); time.Now().Before(deadline); <-tick.C {
		if errors.Is(unix.Kill(-leader, 0), unix.ESRCH) {
			return
		}
	}
}
