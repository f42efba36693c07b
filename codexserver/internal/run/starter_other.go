//go:build !linux

package run

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"
)

// Starter starts processes. It ends them with their groups, and cannot find a process that has
// left its group. The zero value is ready. It is safe for concurrent use.
type Starter struct {
	mu      sync.Mutex
	running map[*Process]bool
	closed  bool
}

// Process is a started process.
type Process struct {
	// PID is its id.
	PID int

	starter *Starter
	exited  chan struct{}
	status  syscall.WaitStatus
}

// Start starts a process. It returns the system's error.
func (s *Starter) Start(_ context.Context, o Order) (*Process, error) {
	if o.Folder != nil {
		o.Cmd.Dir = o.Folder.Name()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, os.ErrClosed
	}
	if err := o.Cmd.Start(); err != nil {
		return nil, err
	}
	started := &Process{PID: o.Cmd.Process.Pid, starter: s, exited: make(chan struct{})}
	if s.running == nil {
		s.running = map[*Process]bool{}
	}
	s.running[started] = true
	go func() { // ends with the process
		defer close(started.exited)
		_ = o.Cmd.Wait() // ProcessState has the result
		if status, ok := o.Cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
			started.status = status
		}
	}()
	return started, nil
}

// Close ends every process. It returns [ErrAlive] if one cannot be ended.
func (s *Starter) Close() error {
	s.mu.Lock()
	s.closed = true
	running := s.running
	s.running = nil
	s.mu.Unlock()
	errs := make(chan error, len(running))
	for started := range running {
		go func() { errs <- started.End() }()
	}
	var err error
	for range running {
		if e := <-errs; e != nil {
			err = e
		}
	}
	return err
}

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Gone is the same as Exited on this system.
func (p *Process) Gone() <-chan struct{} { return p.exited }

// Status waits until the process has ended and returns its status.
func (p *Process) Status() (syscall.WaitStatus, error) {
	<-p.exited
	return p.status, nil
}

// Terminate asks the process and its group to end.
func (p *Process) Terminate() { terminateGroup(p.PID) }

// End kills the process and its group. It returns [ErrAlive] if the process cannot be
// killed.
func (p *Process) End() error {
	killGroup(p.PID)
	p.starter.mu.Lock()
	delete(p.starter.running, p)
	p.starter.mu.Unlock()
	if !within(p.exited, killGrace) {
		return ErrAlive
	}
	return nil
}

// killGrace is how long to wait for a killed process. Some cannot be killed.
const killGrace = 2 * time.Second

// canLeave reports that processes which a command leaves running could not be found later.
const canLeave = false

// Ready reports whether this program can start processes.
func Ready() error { return nil }

// Main does nothing on this system.
func Main(Confine) {}

// SealDescriptors does nothing on this system.
func SealDescriptors() error { return nil }
