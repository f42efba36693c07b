//go:build !linux

package jsonrpc

import (
	"io"
	"os"
)

// polled would return f for use through the runtime's poller.
func polled(*os.File, int) (io.ReadWriteCloser, bool) { return nil, false }

// readiness would write to a descriptor if that does not block.
type readiness struct{ atomic bool }

func newReadiness(io.Writer) *readiness       { return nil }
func (*readiness) write([]byte) (bool, error) { return false, nil }
func (*readiness) writable() bool             { return false }
