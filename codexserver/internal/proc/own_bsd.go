//go:build unix && !linux

package proc

import (
	"errors"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

func killLost(int, *pipes) {} // there are no keepers

// killAll kills the group of leader and waits until it is empty.
func killAll(leader int, _ *leash) {
	_ = unix.Kill(-leader, unix.SIGKILL)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(killGrace); time.Now().Before(deadline); <-tick.C {
		if errors.Is(unix.Kill(-leader, 0), unix.ESRCH) {
			return
		}
	}
}
