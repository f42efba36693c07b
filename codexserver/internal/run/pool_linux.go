package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// mainCalled reports that main begins with [Main], so that this program, started again,
// becomes a keeper. It is global because only main knows it.
var mainCalled atomic.Bool

// Ready returns an error if this program cannot start processes, because its main does not
// begin with [Main]: nothing would end what they leave.
func Ready() error {
	if mainCalled.Load() {
		return nil
	}
	return errors.New("main must begin with native.Main or appserver.Main, which end what the engines start; in a test, TestMain must")
}

// canLeave reports that a keeper finds the processes that a command leaves running.
const canLeave = true

// Grace is how long a keeper tries to kill the processes of a command. Those that are left
// then cannot be killed: they belong to another user, or hang in the kernel.
const Grace = 2 * time.Second

// startLimit is how long the start of a command may take. Executing a program can hang.
const startLimit = 30 * time.Second

// resumeTime is how often a busy keeper is resumed, in case its command has stopped it.
const resumeTime = 100 * time.Millisecond

// maxIdle is how many keepers without a command a pool has at most.
const maxIdle = 4

// Pool starts commands under keepers. The zero value is ready. It is safe for
// concurrent use.
type Pool struct {
	limit time.Duration // of a start; 0 is startLimit

	mu     sync.Mutex
	idle   []*keeper
	all    map[*keeper]bool
	closed bool
	busy   sync.WaitGroup // a goroutine for each keeper's process, and each command
}

// keeper is a keeper's process as the server sees it.
type keeper struct {
	*link
	mark    mark
	proc    *os.Process
	leaving chan struct{} // closed when it must end
	ended   chan struct{} // closed when the process has ended
	end     *os.ProcessState
}

// Start starts a command. It returns the system's error, the cause of ctx if ctx ends
// before the command has started, or [ErrSlow]. The error also wraps [ErrLost] if the
// keeper was killed. Ctx does not end a running command.
func (p *Pool) Start(ctx context.Context, o Order) (*Process, error) {
	if len(o.Cmd.Args) == 0 {
		return nil, errors.New("the command is empty")
	}
	if err := Ready(); err != nil {
		return nil, err
	}
	req, files, err := o.request()
	if err != nil {
		return nil, err
	}
	var k *keeper
	for sent := false; !sent; {
		fresh := false
		if k, fresh, err = p.take(); err != nil {
			return nil, err
		}
		if err = k.send(req, files...); err == nil {
			sent = true
			continue
		}
		p.discard(k)
		if fresh { // an idle one may have been killed meanwhile
			return nil, fmt.Errorf("keeper: %w", err)
		}
	}
	r, err := k.started(ctx, cmp.Or(p.limit, startLimit))
	if err != nil {
		p.discard(k)
		if errors.Is(err, ErrLost) { // the command may have started
			k.sweep()
		}
		return nil, err
	}
	if r.Error != nil {
		p.put(k)
		return nil, &remoteError{text: r.Error.Text, errno: r.Error.Errno}
	}
	proc := &Process{pool: p, keeper: k, PID: r.PID, exited: make(chan struct{}), gone: make(chan struct{})}
	p.busy.Go(proc.watch)
	return proc, nil
}

// started waits for the keeper's reply to the start.
func (k *keeper) started(ctx context.Context, limit time.Duration) (r reply, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrSlow)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { k.conn.Close() }) // the keeper ends, with the command
	running := k.keepRunning(nil)
	defer running()
	_, err = k.receive(&r)
	if !stop() {
		if k.killed() {
			return r, fmt.Errorf("%w; %w", context.Cause(ctx), ErrLost)
		}
		return r, context.Cause(ctx)
	}
	if err != nil {
		return r, ErrLost
	}
	return r, nil
}

// request returns the order as a message, with its descriptors.
func (o Order) request() (request, []*os.File, error) {
	cmd := o.Cmd
	attr, err := attrOf(cmd.SysProcAttr)
	if err != nil {
		return request{}, nil, err
	}
	s := &start{
		Path: []byte(cmd.Path), Args: wordsOf(cmd.Args), Env: wordsOf(cmd.Env), Dir: []byte(cmd.Dir), Attr: attr,
		Extra: len(cmd.ExtraFiles), Confinement: o.Confinement,
	}
	var files []*os.File
	for _, stream := range []struct {
		file any
		have *bool
	}{{cmd.Stdin, &s.Stdin}, {cmd.Stdout, &s.Stdout}, {cmd.Stderr, &s.Stderr}} {
		if stream.file == nil {
			continue
		}
		f, ok := stream.file.(*os.File)
		if !ok {
			return request{}, nil, fmt.Errorf("a keeper needs files as standard streams, not a %T", stream.file)
		}
		*stream.have = true
		files = append(files, f)
	}
	if o.Folder != nil {
		s.Folder = true
		files = append(files, o.Folder)
	}
	files = append(files, cmd.ExtraFiles...)
	return request{Start: s}, append(files, o.Files...), nil
}

func wordsOf(list []string) [][]byte {
	words := make([][]byte, len(list))
	for i, s := range list {
		words[i] = []byte(s)
	}
	return words
}

// take returns an idle keeper or a new one.
func (p *Pool) take() (k *keeper, fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, os.ErrClosed
	}
	if n := len(p.idle); n > 0 {
		k, p.idle = p.idle[n-1], p.idle[:n-1]
		return k, false, nil
	}
	if k, err = p.spawn(); err != nil {
		return nil, false, fmt.Errorf("start a keeper: %w", err)
	}
	return k, true, nil
}

// spawn starts a keeper. The caller holds the lock.
func (p *Pool) spawn() (*keeper, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	theirs := os.NewFile(uintptr(fds[1]), "keeper")
	defer theirs.Close()
	l, err := linkOf(fds[0])
	if err != nil {
		return nil, err
	}
	m := newMark()
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{name, m.String()}, Env: []string{}, Dir: "/",
		ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:    true,         // out of reach of the terminal
			Pdeathsig: unix.SIGCONT, // resumes a stopped keeper, so that it notices the server's end
		},
	}
	if err := cmd.Start(); err != nil {
		l.conn.Close()
		return nil, err
	}
	k := &keeper{link: l, mark: m, proc: cmd.Process, leaving: make(chan struct{}), ended: make(chan struct{})}
	if p.all == nil {
		p.all = map[*keeper]bool{}
	}
	p.all[k] = true
	p.busy.Go(func() {
		defer close(k.ended)
		_ = cmd.Wait() // ProcessState has the result
		k.end = cmd.ProcessState
	})
	p.busy.Go(k.leave)
	return k, nil
}

// put returns a keeper whose command is gone to the pool.
func (p *Pool) put(k *keeper) {
	p.mu.Lock()
	if !p.closed && len(p.idle) < maxIdle {
		p.idle = append(p.idle, k)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.discard(k)
}

// discard ends a keeper, which kills its command first.
func (p *Pool) discard(k *keeper) {
	k.conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[k] { // otherwise [Pool.Close] ends it
		delete(p.all, k)
		close(k.leaving)
	}
}

// leave waits for the end of a keeper, and helps it to end its command.
func (k *keeper) leave() {
	select {
	case <-k.leaving:
		defer k.keepRunning(k.stopCommand)()
		<-k.ended
	case <-k.ended:
	}
}

// resume continues a keeper that was stopped.
func (k *keeper) resume() { _ = k.proc.Signal(unix.SIGCONT) }

// stopCommand stops the processes of the command. The keeper may not be able to do it,
// because a command can stop its keeper again and again.
func (k *keeper) stopCommand() {
	command := descendants(processes(), k.proc.Pid)
	select {
	case <-k.ended: // another process may have its PID by now
		return
	default:
	}
	signalAll(command, unix.SIGSTOP)
}

// killed waits for the end of the keeper and reports whether it was killed, or failed. Its
// command then still runs.
func (k *keeper) killed() bool {
	timer := time.NewTimer(Grace)
	defer timer.Stop()
	select {
	case <-k.ended:
		return k.end == nil || !k.end.Success()
	case <-timer.C:
		return false
	}
}

// keepRunning resumes a keeper regularly until stop is called, because its command can
// stop it at any time. It calls before, unless that is nil, before each further resume.
func (k *keeper) keepRunning(before func()) (stop func()) {
	k.resume()
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(resumeTime)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if before != nil {
					before()
				}
				k.resume()
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

// Close ends every command and its keeper. It returns [ErrAlive] when that takes longer
// than twice [Grace]. The keepers then continue to try.
func (p *Pool) Close() error {
	p.mu.Lock()
	unused := p.all == nil && !p.closed // nothing has started, and nothing will
	p.closed = true
	all := p.all
	p.all, p.idle = nil, nil
	p.mu.Unlock()
	if unused {
		return nil
	}
	for k := range all {
		_ = k.conn.CloseWrite() // its last replies are still read
		close(k.leaving)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.busy.Wait()
	}()
	timeout := time.NewTimer(2 * Grace)
	defer timeout.Stop()
	var err error
	select {
	case <-ended:
	case <-timeout.C:
		err = ErrAlive
	}
	for k := range all {
		k.conn.Close()
	}
	return err
}
