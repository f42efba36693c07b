package run

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"

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
	return errors.New("main must begin with native.Main or appserver.Main, which end what the engines start; in a " +
		"test, TestMain must")
}

// canLeave reports that a launcher finds the processes that a command leaves running.
const canLeave = true

// report is what a launcher says about its command.
type report struct {
	kind  string
	value uint32
	text  string
}

const (
	reportFailed  = "failed"  // nothing was started; the value is the system's error
	reportStarted = "started" // the value is the PID of the first process
	reportExited  = "exited"  // the first process ended; the value is its status
	reportLast    = "last"    // the same, and there is no other
	reportGone    = "gone"    // all processes have ended
	reportBroken  = "broken"  // the launcher ends the command; the text says why
)

func (r report) send(w io.Writer) {
	line := strconv.AppendUint(append([]byte(r.kind), ' '), uint64(r.value), 10)
	line = append(strconv.AppendQuote(append(line, ' '), r.text), '\n')
	_, _ = w.Write(line) // fails when the server is gone
}

func (r *report) read(from *bufio.Reader) error {
	_, err := fmt.Fscanf(from, "%s %d %q\n", &r.kind, &r.value, &r.text)
	return err
}

// hold is the launcher, as it was when it started, and the connection to it.
type hold struct {
	launcher process
	server   *os.File
}

// release closes the connection, which the launcher notices.
func (h hold) release() { _ = h.server.Close() }

// launchError is an error that a launcher reported.
type launchError struct {
	text  string
	errno syscall.Errno
}

func (e *launchError) Error() string { return e.text }

// Unwrap returns the system's error, if there was one.
func (e *launchError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// launch starts a launcher for a command. Its environment is the order: the numbered words of the
// command, which no other process of the user can read, and none of which Go's runtime takes for
// its own.
func (p *Process) launch(cmd *exec.Cmd, confinement string) error {
	if err := Ready(); err != nil {
		return err
	}
	if len(cmd.Args) == 0 {
		return errors.New("the command is empty")
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_ = unix.SetNonblock(fds[0], true) // so that closing it ends a read
	theirs := os.NewFile(uintptr(fds[1]), "launcher")
	defer theirs.Close()
	p.server = os.NewFile(uintptr(fds[0]), "launcher")
	env := launcherEnviron()
	for i, word := range (order{confinement: confinement, path: cmd.Path, args: cmd.Args, env: cmd.Env}).words() {
		env = append(env, strconv.Itoa(i)+"="+word)
	}
	p.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{name}, Env: env, Dir: cmd.Dir,
		Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr, WaitDelay: drainGrace,
		ExtraFiles: append([]*os.File{theirs}, cmd.ExtraFiles...),
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:    true,         // out of reach of the terminal, and one session with the command
			Pdeathsig: unix.SIGCONT, // resumes a stopped launcher, so that it notices the server's end
		},
	}
	if p.cmd.Dir == "" {
		p.cmd.Dir = "/"
	}
	if err := p.cmd.Start(); err != nil {
		p.server.Close()
		return fmt.Errorf("start a launcher for %s: %w", cmd.Path, err)
	}
	p.launcher, _ = readProcess(p.cmd.Process.Pid) // otherwise the launcher alone ends its command
	return nil
}

// watch reads the launcher's reports until it has ended.
func (p *Process) watch() {
	defer p.server.Close()
	p.lost, p.failure = true, ErrLost
	reports := bufio.NewReader(p.server)
	for {
		var r report
		if r.read(reports) != nil {
			break
		}
		switch r.kind {
		case reportFailed:
			p.lost, p.failure = false, &launchError{r.text, syscall.Errno(r.value)}
		case reportStarted:
			p.PID, p.failure = int(r.value), nil
			close(p.begun)
		case reportBroken:
			if p.broken == nil && !isClosed(p.gone) { // the first is why; what follows may come of it
				p.broken = errors.New(r.text)
			}
		case reportExited, reportLast:
			p.status, p.known = syscall.WaitStatus(r.value), true
			close(p.exited)
		}
		if r.kind == reportLast || r.kind == reportGone {
			p.lost = false
			close(p.gone)
		}
	}
	if p.lost {
		end(p.command)
	}
	p.settle()
	_ = p.cmd.Wait() // not before the sweep, because its PID names its session
}

// command returns the processes of the launcher's session, which is the command's too, the launcher's
// descendants, and those of both.
func (p *Process) command() []process {
	launcher := p.launcher.pid
	return p.launcher.command(func(one process) bool {
		return one.pid != launcher && (one.session == launcher || one.parent == launcher)
	})
}

// resume lets the launcher run, which its command can stop at any time. It fails when the launcher
// has ended.
func (p *Process) resume() error { return p.cmd.Process.Signal(unix.SIGCONT) }

// Terminate asks the processes of the command to end.
func (p *Process) Terminate() { p.signal(unix.SIGTERM) }

// signal sends a signal to the processes of the command.
func (p *Process) signal(sig unix.Signal) {
	if command := p.command(); p.resume() == nil { // otherwise another process may have the launcher's PID by now
		signalAll(command, sig)
	}
}

// End kills all processes of the command and waits until they are gone, at most [Grace]. It
// returns [ErrLost] if the launcher ended before the command, and [ErrAlive] if there are
// processes that the launcher cannot kill.
func (p *Process) End() error {
	if !isClosed(p.gone) {
		_, _ = p.server.Write([]byte{0}) // fails when the launcher is gone
	}
	for range int(Grace / resumeTime) {
		_ = p.resume()
		if within(p.gone, resumeTime) {
			if p.lost {
				return ErrLost
			}
			return nil
		}
		// The launcher may not be able to do it, because a command can stop its launcher again and again.
		p.signal(unix.SIGSTOP)
	}
	return ErrAlive
}
