//go:build !linux

package jsonrpc

import (
	"io"
	"os"
)

// polled would return f for use through the runtime's poller.
func polled(*os.File, int) (io.ReadWriteCloser, bool) { return nil, false }

// readiness would ask the kernel whether a write would block.
type readiness struct{}

func newReadiness(io.Writer) *readiness { return nil }
func (*readiness) writable(int) bool    { return false }
