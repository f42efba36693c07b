package servertest

import (
	"math/rand/v2"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// AtAnyMoment ends servers by SIGHUP and by signals that they cannot or do not handle, and
// waits until nothing of each server is left. It sends each signal to that many servers:
// to the first two, one in each sandbox mode, when the daemons of [Daemons] run; to the
// others at a random moment, perhaps before their command has started.
//
// Start returns an MCP server's command, whose folder is unset and whose
// environment lacks PATH and HOME.
func AtAnyMoment(t *testing.T, moments int, start func(*testing.T) *exec.Cmd) {
	begun := time.Now()
	s := startVictim(t, start(t), endModes[0])
	s.awaitUp(t)
	usual := time.Since(begun)
	s.end(t, syscall.SIGKILL)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT} {
		for n := range moments {
			t.Run(sig.String(), func(t *testing.T) {
				t.Parallel()
				s := startVictim(t, start(t), endModes[n%len(endModes)])
				if n < len(endModes) {
					s.awaitUp(t)
				} else {
					<-time.After(rand.N(2 * usual))
				}
				s.end(t, sig)
			})
		}
	}
}

var endModes = []string{"danger-full-access", "workspace-write"}
