//go:build !linux

package proc

import (
	"context"
	"errors"
	"syscall"
)

// Pool starts nothing on this system.
type Pool struct{}

// Start fails.
func (*Pool) Start(context.Context, Order) (*Process, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Pool) Close() error { return nil }

// Process does not exist on this system.
type Process struct{ PID int }

// Exited returns nil.
func (*Process) Exited() <-chan struct{} { return nil }

// Gone returns nil.
func (*Process) Gone() <-chan struct{} { return nil }

// Status fails.
func (*Process) Status() (status syscall.WaitStatus, err error) { return status, errors.ErrUnsupported }

// End does nothing.
func (*Process) End() error { return nil }

// Main does nothing on this system.
func Main(Start) {}
