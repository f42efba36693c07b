//go:build unix && !linux

package run

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// groupAttr makes the process the leader of a new session and process group without a
// terminal.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func terminateGroup(leader int) { _ = unix.Kill(-leader, unix.SIGTERM) }

// killGroup kills the group of leader and waits until it is empty.
func killGroup(leader int) {
	_ = unix.Kill(-leader, unix.SIGKILL)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(Grace); time.Now().Before(deadline); <-tick.C {
		if errors.Is(unix.Kill(-leader, 0), unix.ESRCH) {
			return
		}
	}
}
