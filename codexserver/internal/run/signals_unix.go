//go:build unix

package run

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// withSignals calls start, which starts a process: it begins with the usual action of each signal, none blocked,
// whatever the host of this program has set.
func withSignals(start func() error) error {
	// Go gives a child the usual action of each signal for which it has a handler. It has none for these two if this
	// program began without them.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig) // which nobody reads: this process ignores it as before
		}
	}
	runtime.LockOSThread() // a child inherits the mask of the thread that starts it
	defer runtime.UnlockOSThread()
	return unblocked(start)
}
