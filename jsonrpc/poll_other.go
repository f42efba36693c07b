//go:build !linux

package jsonrpc

import (
	"io"
	"os"
)

// polled would return f for use through the runtime's poller.
func polled(*os.File) (io.WriteCloser, bool) { return nil, false }

// newStoppable would return a reader of f whose Close unblocks a Read.
func newStoppable(*os.File) (io.ReadCloser, bool) { return nil, false }

// nonBlocking would report whether f is in non-blocking mode.
func nonBlocking(*os.File) bool { return false }

// readiness would write to a descriptor if that does not block.
type readiness struct{ atomic bool }

func newReadiness(io.Writer) *readiness       { return nil }
func (*readiness) write([]byte) (bool, error) { return false, nil }
func (*readiness) writable() bool             { return false }
