//go:build !linux

package jsonrpc

import (
	"io"
	"os"
)

// polled would return f for use through the runtime's poller.
func polled(*os.File, int) (io.ReadWriteCloser, bool) { return nil, false }

// reopen would open a pipe in blocking mode again.
func reopen(*os.File, int) (*os.File, bool) { return nil, false }

// nonBlocking would report whether f is in non-blocking mode.
func nonBlocking(*os.File) bool { return false }

// readiness would write to a descriptor if that does not block.
type readiness struct{ atomic bool }

func newReadiness(io.Writer) *readiness       { return nil }
func (*readiness) write([]byte) (bool, error) { return false, nil }
func (*readiness) writable() bool             { return false }
