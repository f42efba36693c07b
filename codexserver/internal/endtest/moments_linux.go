package endtest

import (
	"math/rand/v2"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// AtAnyMoment ends servers by signals that they cannot or do not handle, and by
// that of a terminal's end, each at so many moments: the first two, one in each
// sandbox mode, when the daemons of [Script] are up, the others at random, also
// before the command has started. It then waits until nothing of the server is
// left.
//
// Start returns an MCP server's command, whose folder is unset and whose
// environment lacks PATH and HOME.
func AtAnyMoment(t *testing.T, moments int, start func(*testing.T) *exec.Cmd) {
	begun := time.Now()
	s := startServer(t, start(t), modes[0])
	s.awaitUp(t)
	usual := time.Since(begun)
	s.end(t, syscall.SIGKILL)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT} {
		for n := range moments {
			t.Run(sig.String(), func(t *testing.T) {
				t.Parallel()
				s := startServer(t, start(t), modes[n%len(modes)])
				if n < len(modes) {
					s.awaitUp(t)
				} else {
					<-time.After(rand.N(2 * usual))
				}
				s.end(t, sig)
			})
		}
	}
}

var modes = []string{"danger-full-access", "workspace-write"}
