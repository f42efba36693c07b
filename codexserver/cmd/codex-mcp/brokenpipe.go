package main

import (
	"os"
	"os/signal"
	"syscall"
)

// surviveBrokenPipes makes a write to a pipe without a reader return an error instead of
// ending the program. It receives SIGPIPE rather than ignoring it, since commands inherit
// ignored signals.
func surviveBrokenPipes() (stop func()) {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGPIPE)
	return func() { signal.Stop(received) }
}
