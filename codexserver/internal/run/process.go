package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Grace is how long it may take to kill the processes of a command. Those that are left then
// cannot be killed: they belong to another user, or hang in the kernel.
const Grace = 2500 * time.Millisecond

// startLimit is how long the start of a command may take. Executing a program can hang.
const startLimit = 30 * time.Second

// resumeTime is how often a launcher that must act is resumed, in case its command has stopped
// it.
const resumeTime = 100 * time.Millisecond

// ErrLost is the error of a command whose launcher was killed before the command ended.
var ErrLost = errors.New("the process that keeps the command was killed, and with it what could be found of the " +
	"command")

// ErrSlow is the error of a command that did not start in time.
var ErrSlow = errors.New("the command did not start in time")

// ErrAlive is the error of a command with processes that cannot be killed.
var ErrAlive = errors.New("processes of the command cannot be killed")

// Starter starts commands. On Linux each has a launcher of its own. Other systems end a command
// with its group, and cannot find a process that has left the group. The zero value is ready.
// It is safe for concurrent use.
type Starter struct {
	mu      sync.Mutex
	running map[*Process]bool // that have not ended
	closed  bool
}

// Process is a started command.
type Process struct {
	// PID is the id of the command's first process.
	PID int

	cmd     *exec.Cmd     // the launcher or, on other systems, the command
	begun   chan struct{} // closed when the command has started, or nothing was started
	exited  chan struct{} // closed when the first process has ended, or the launcher is lost
	gone    chan struct{} // closed when all processes have ended, or the launcher is lost
	over    chan struct{} // closed when the launcher has ended, too, and the output was read
	failure error         // why nothing was started
	status  syscall.WaitStatus
	known   bool  // the status is that of the first process
	lost    bool  // the launcher ended before the command
	broken  error // why the launcher ended the command, nil if it did not

	hold // by what the system keeps the processes together
}

// Start starts a command with the words and the descriptor of its [Confinement], "" for none. It
// runs in / by default. It returns the system's error, the cause of ctx if ctx ends before the
// command has started, or [ErrSlow]. The error also wraps [ErrLost] if the launcher was killed.
// Ctx does not end a running command.
func (s *Starter) Start(ctx context.Context, cmd *exec.Cmd, confinement string) (*Process, error) {
	p, err := s.launch(cmd, confinement)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, ErrSlow)
	defer cancel()
	tick := time.NewTicker(resumeTime)
	defer tick.Stop()
	for {
		select {
		case <-p.begun:
			return p, p.failure
		case <-tick.C:
			_ = p.resume()
		case <-ctx.Done():
			if err := p.End(); err != nil {
				return nil, fmt.Errorf("%w; %w", context.Cause(ctx), err)
			}
			return nil, context.Cause(ctx)
		}
	}
}

// launch starts the process of a command, which it watches until the end.
func (s *Starter) launch(cmd *exec.Cmd, confinement string) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, os.ErrClosed
	}
	p := &Process{begun: make(chan struct{}), exited: make(chan struct{}), gone: make(chan struct{}),
		over: make(chan struct{})}
	if err := p.launch(cmd, confinement); err != nil {
		return nil, err
	}
	if s.running == nil {
		s.running = map[*Process]bool{}
	}
	s.running[p] = true
	go func() { // ends with the process
		p.watch()
		s.mu.Lock()
		delete(s.running, p)
		s.mu.Unlock()
		close(p.over)
	}()
	return p, nil
}

// settle closes what is closed when the command has ended, and was not before.
func (p *Process) settle() {
	for _, c := range []chan struct{}{p.begun, p.exited, p.gone} {
		if !isClosed(c) {
			close(c)
		}
	}
}

// Close ends every command. It returns [ErrAlive] if one cannot be ended. On Linux its launcher
// then continues to try for a while.
func (s *Starter) Close() error {
	s.mu.Lock()
	s.closed = true
	all := slices.Collect(maps.Keys(s.running))
	s.mu.Unlock()
	var alive atomic.Bool
	var ending sync.WaitGroup
	for _, p := range all {
		ending.Go(func() {
			if err := p.End(); errors.Is(err, ErrAlive) || !within(p.over, Grace) { // soon after
				alive.Store(true)
			}
			p.release()
		})
	}
	ending.Wait()
	if alive.Load() {
		return ErrAlive
	}
	return nil
}

// Exited returns a channel that is closed when the first process has ended, or the launcher
// is lost.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Code returns the exit code of the first process as shells report it: its own, or 128 plus
// the number of the signal that ended it. It is -1 if the process has not ended or its launcher
// was killed.
func (p *Process) Code() int {
	switch {
	case !isClosed(p.exited) || !p.known:
		return -1
	case p.status.Signaled():
		return 128 + int(p.status.Signal())
	}
	return p.status.ExitStatus()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// within reports whether c is closed within a time.
func within(c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}
