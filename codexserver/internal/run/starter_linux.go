package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// mainCalled reports that main begins with [Main], so that this program, started again,
// becomes a launcher. It is global because only main knows it.
var mainCalled atomic.Bool

// Ready returns an error if this program cannot start processes, because its main does not
// begin with [Main]: nothing would end what they leave.
func Ready() error {
	if mainCalled.Load() {
		return nil
	}
	return errors.New("main must begin with native.Main or appserver.Main, which end what the engines start; in a test, TestMain must")
}

// canLeave reports that a launcher finds the processes that a command leaves running.
const canLeave = true

// Grace is how long a launcher tries to kill the processes of a command. Those that are left
// then cannot be killed: they belong to another user, or hang in the kernel.
const Grace = 2 * time.Second

// startLimit is how long the start of a command may take. Executing a program can hang.
const startLimit = 30 * time.Second

// resumeTime is how often a launcher that must act is resumed, in case its command has stopped
// it.
const resumeTime = 100 * time.Millisecond

// Starter starts commands, each under a launcher of its own. The zero value is ready.
// It is safe for concurrent use.
type Starter struct {
	limit time.Duration // of a start; 0 is startLimit

	mu      sync.Mutex
	running map[*Process]bool // whose launcher has not ended
	closed  bool
	busy    sync.WaitGroup // goroutines of launchers
}

// Process is a command under its launcher.
type Process struct {
	// PID is the id of the command's first process.
	PID int

	launcher *exec.Cmd
	server   *os.File      // the connection to the launcher
	begun    chan struct{} // closed when the command has started, or nothing was started
	exited   chan struct{}
	gone     chan struct{}
	ended    chan struct{} // closed when the launcher has ended
	failure  error         // why nothing was started
	status   syscall.WaitStatus
	lost     bool // the launcher ended before the first process
	failed   bool // the launcher ended before the command
}

// Start starts a command. It returns the system's error, the cause of ctx if ctx ends
// before the command has started, or [ErrSlow]. The error also wraps [ErrLost] if the
// launcher was killed. Ctx does not end a running command.
func (s *Starter) Start(ctx context.Context, o Order) (*Process, error) {
	if err := Ready(); err != nil {
		return nil, err
	}
	order, err := o.message()
	if err != nil {
		return nil, err
	}
	p, err := s.launch(o)
	if err != nil {
		return nil, fmt.Errorf("start a launcher: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(s.limit, startLimit), ErrSlow)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { p.server.Close() }) // the launcher ends, with the command
	defer p.keepRunning(nil)()
	_, _ = p.server.Write(order) // without an order, the launcher reports that nothing was started
	select {
	case <-p.begun:
		if stop() {
			return p, p.failure
		}
	case <-ctx.Done(): // stop could still win, so it is not asked
	}
	if s.discard(p) && !p.launcher.ProcessState.Success() {
		return nil, fmt.Errorf("%w; %w", context.Cause(ctx), ErrLost)
	}
	return nil, context.Cause(ctx)
}

// launch starts a launcher with the streams and the folder of an order.
func (s *Starter) launch(o Order) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, os.ErrClosed
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(fds[0], true) // so that closing it ends a read
	ours, theirs := os.NewFile(uintptr(fds[0]), "launcher"), os.NewFile(uintptr(fds[1]), "launcher")
	defer theirs.Close()
	dir := cmp.Or(o.Cmd.Dir, "/")
	if o.Folder != nil {
		dir = fmt.Sprintf("/proc/self/fd/%d", o.Folder.Fd())
	}
	launcher := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{name}, Env: launcherEnviron(), Dir: dir,
		Stdin: o.Cmd.Stdin, Stdout: o.Cmd.Stdout, Stderr: o.Cmd.Stderr,
		ExtraFiles: append([]*os.File{theirs}, o.Files...),
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:    true,         // out of reach of the terminal, and one session with the command
			Pdeathsig: unix.SIGCONT, // resumes a stopped launcher, so that it notices the server's end
		},
	}
	if err := launcher.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	p := &Process{launcher: launcher, server: ours, begun: make(chan struct{}), exited: make(chan struct{}), gone: make(chan struct{}), ended: make(chan struct{})}
	if s.running == nil {
		s.running = map[*Process]bool{}
	}
	s.running[p] = true
	s.busy.Go(func() {
		defer close(p.ended)
		p.watch()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, p)
	})
	return p, nil
}

// watch reads the launcher's reports until it has ended.
func (p *Process) watch() {
	defer p.server.Close()
	p.failure = ErrLost
	err := p.read()
	killed := p.launcher.Wait() != nil
	if err == nil {
		return
	}
	p.lost, p.failed = !isClosed(p.exited), true
	if killed { // or it failed
		p.sweep()
	}
	for _, c := range []chan struct{}{p.begun, p.exited, p.gone} {
		if !isClosed(c) {
			close(c)
		}
	}
}

// read reads reports until all processes of the command have ended. The error says that there are
// no more.
func (p *Process) read() error {
	for {
		r, err := readReport(p.server)
		if err != nil {
			return err
		}
		switch r.kind {
		case reportFailed:
			if text, err := io.ReadAll(p.server); err == nil {
				p.failure = &launchError{text: string(text), errno: syscall.Errno(r.value)}
			}
		case reportStarted:
			p.PID, p.failure = int(r.value), nil
			close(p.begun)
		case reportExited:
			p.status = syscall.WaitStatus(r.value)
			close(p.exited)
		case reportGone:
			close(p.gone)
			return nil
		}
	}
}

// sweep kills what it finds of a command whose launcher was killed: the processes of the
// launcher's session, and those that they have started.
func (p *Process) sweep() {
	find := func() (found []entry) {
		all := processes()
		for _, one := range all {
			if one.Session == p.launcher.Process.Pid && !one.Dead {
				found = append(append(found, one), descendants(all, one.PID)...)
			}
		}
		return found
	}
	for deadline := time.Now().Add(lastGrace); ; {
		left := find()
		if len(left) == 0 || time.Now().After(deadline) {
			return
		}
		stopAll(find)
		signalAll(left, unix.SIGKILL)
		pause := time.NewTimer(time.Millisecond)
		<-pause.C
	}
}

// discard ends the launcher, which kills its command first. It reports whether the launcher has ended.
func (s *Starter) discard(p *Process) bool {
	p.server.Close()
	s.busy.Go(func() {
		defer p.keepRunning(p.stop)()
		<-p.ended
	})
	return within(p.ended, Grace)
}

// stop stops the processes of the command. The launcher may not be able to do it, because a
// command can stop its launcher again and again.
func (p *Process) stop() {
	command := descendants(processes(), p.launcher.Process.Pid)
	if !isClosed(p.ended) { // otherwise another process may have its PID by now
		signalAll(command, unix.SIGSTOP)
	}
}

// keepRunning resumes the launcher regularly until stop is called, because its command can stop
// it at any time. It calls before, unless that is nil, before each further resume.
func (p *Process) keepRunning(before func()) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(resumeTime)
		defer tick.Stop()
		for {
			_ = p.launcher.Process.Signal(unix.SIGCONT)
			select {
			case <-done:
				return
			case <-tick.C:
				if before != nil {
					before()
				}
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

// Exited returns a channel that is closed when the first process has ended, or the launcher
// is lost.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Gone returns a channel that is closed when all processes of the command have ended, or
// the launcher is lost.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Status waits until the first process has ended and returns its status. The error is
// [ErrLost] if the launcher ended first.
func (p *Process) Status() (syscall.WaitStatus, error) {
	<-p.exited
	if p.lost {
		return 0, ErrLost
	}
	return p.status, nil
}

// Terminate asks the processes of the command to end.
func (p *Process) Terminate() { p.send(askToEnd) }

// send fails when the launcher is gone, and with it the command.
func (p *Process) send(request byte) { _, _ = p.server.Write([]byte{request}) }

// End kills all processes of the command and waits until they are gone, a little longer
// than [Grace] at most. It returns [ErrLost] if the launcher ended before the command, and
// [ErrAlive] if there are processes that the launcher cannot kill.
func (p *Process) End() error {
	if !isClosed(p.gone) {
		p.send(endNow)
		defer p.keepRunning(p.stop)()
	}
	switch {
	case !within(p.gone, Grace+Grace/4):
		return ErrAlive
	case p.failed:
		return ErrLost
	}
	return nil
}

// Close ends every command and its launcher. It returns [ErrAlive] when that takes longer
// than twice [Grace]. The launchers then continue to try.
func (s *Starter) Close() error {
	s.mu.Lock()
	s.closed = true
	all := slices.Collect(maps.Keys(s.running))
	s.mu.Unlock()
	alive := make(chan bool, len(all))
	for _, p := range all {
		go func() { alive <- errors.Is(p.End(), ErrAlive) || !within(p.ended, Grace/2) }() // ends soon
	}
	var err error
	for range all {
		if <-alive {
			err = ErrAlive
		}
	}
	if err != nil {
		for _, p := range all {
			p.server.Close()
		}
		return err
	}
	s.busy.Wait()
	return nil
}
