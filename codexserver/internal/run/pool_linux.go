package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// Pool is a set of running commands, each under a launcher of its own. The zero value is ready.
// It is safe for concurrent use.
type Pool struct {
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
	ended    chan struct{} // closed when the launcher has ended
	exited   chan struct{}
	gone     chan struct{}
	status   syscall.WaitStatus
	lost     bool // the launcher ended before the first process
	failed   bool // the launcher ended before the command
}

// Start starts a command. It returns the system's error, the cause of ctx if ctx ends
// before the command has started, or [ErrSlow]. The error also wraps [ErrLost] if the
// launcher was killed. Ctx does not end a running command.
func (p *Pool) Start(ctx context.Context, o Order) (*Process, error) {
	if err := Ready(); err != nil {
		return nil, err
	}
	order, files, err := o.frames()
	if err != nil {
		return nil, err
	}
	proc, err := p.launch(o.Cmd, files)
	if err != nil {
		return nil, fmt.Errorf("start a launcher: %w", err)
	}
	if err := proc.begin(ctx, order, cmp.Or(p.limit, startLimit)); err != nil {
		proc.discard()
		if errors.Is(err, ErrLost) { // the command may have started
			proc.sweep()
		}
		return nil, err
	}
	p.busy.Go(proc.watch)
	return proc, nil
}

// launch starts a launcher with the streams of cmd.
func (p *Pool) launch(cmd *exec.Cmd, files []*os.File) (*Process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, os.ErrClosed
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(fds[0], true) // so that closing it ends a read
	ours, theirs := os.NewFile(uintptr(fds[0]), "launcher"), os.NewFile(uintptr(fds[1]), "launcher")
	defer theirs.Close()
	launcher := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{name}, Env: launcherEnviron(), Dir: "/",
		Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr,
		ExtraFiles: append([]*os.File{theirs}, files...),
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:    true,         // out of reach of the terminal, and one session with the command
			Pdeathsig: unix.SIGCONT, // resumes a stopped launcher, so that it notices the server's end
		},
	}
	if err := launcher.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	proc := &Process{launcher: launcher, server: ours, ended: make(chan struct{}), exited: make(chan struct{}), gone: make(chan struct{})}
	if p.running == nil {
		p.running = map[*Process]bool{}
	}
	p.running[proc] = true
	p.busy.Go(func() {
		defer close(proc.ended)
		_ = launcher.Wait() // ProcessState has the result
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, proc)
	})
	return proc, nil
}

// begin sends the order and waits for the report of the start.
func (p *Process) begin(ctx context.Context, order []byte, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrSlow)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { p.server.Close() }) // the launcher ends, with the command
	defer p.keepRunning(nil)()
	_, err := p.server.Write(order)
	var r report
	if err == nil {
		r, err = readReport(p.server)
	}
	var text []byte
	if err == nil && r.kind == reportFailed {
		text, err = io.ReadAll(p.server)
	}
	if !stop() {
		if p.killed() {
			return fmt.Errorf("%w; %w", context.Cause(ctx), ErrLost)
		}
		return context.Cause(ctx)
	}
	switch {
	case err != nil:
		return ErrLost
	case r.kind == reportFailed:
		return &launchError{text: string(text), errno: syscall.Errno(r.value)}
	}
	p.PID = int(r.value)
	return nil
}

// watch reads the launcher's reports of the command.
func (p *Process) watch() {
	for {
		r, err := readReport(p.server)
		if err == nil && r.kind == reportExited {
			p.status = syscall.WaitStatus(r.value)
			close(p.exited)
			continue
		}
		if err != nil {
			p.lost, p.failed = !isClosed(p.exited), true
			if p.killed() {
				p.sweep()
			}
		}
		break
	}
	if p.lost {
		close(p.exited)
	}
	close(p.gone)
	p.server.Close()
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

// killed waits for the end of the launcher and reports whether it was killed, or failed. Its
// command then still runs.
func (p *Process) killed() bool {
	return p.endsWithin(Grace) && !p.launcher.ProcessState.Success()
}

func (p *Process) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// discard ends the launcher, which kills its command first.
func (p *Process) discard() {
	p.server.Close()
	go func() { // ends with the launcher
		defer p.keepRunning(p.stop)()
		<-p.ended
	}()
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
	timer := time.NewTimer(Grace + Grace/4)
	defer timer.Stop()
	select {
	case <-p.gone:
		if p.failed {
			return ErrLost
		}
		return nil
	case <-timer.C:
		return ErrAlive
	}
}

// Close ends every command and its launcher. It returns [ErrAlive] when that takes longer
// than twice [Grace]. The launchers then continue to try.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	all := make([]*Process, 0, len(p.running))
	for proc := range p.running {
		all = append(all, proc)
	}
	p.mu.Unlock()
	for _, proc := range all {
		proc.send(endNow)
		defer proc.keepRunning(proc.stop)()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.busy.Wait()
	}()
	timeout := time.NewTimer(2 * Grace)
	defer timeout.Stop()
	select {
	case <-ended:
		return nil
	case <-timeout.C:
		for _, proc := range all {
			proc.server.Close()
		}
		return ErrAlive
	}
}
