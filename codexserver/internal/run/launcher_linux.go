package run

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// controlFD is the launcher's descriptor of its connection to the server. Those of the order
// follow.
const controlFD = 3

// lastGrace is how long a launcher without a server tries to kill its command.
const lastGrace = 30 * time.Second

// name is os.Args[0] of this program when it is started as a launcher.
const name = "codex-mcp-launch"

// launcherEnviron is the environment of a launcher. Starting a command occupies one of the
// runtime's processors until the program is executed, which can take forever. So there are two,
// also on a machine with one, and no garbage collection, which would wait for both.
func launcherEnviron() []string { return []string{"GOMAXPROCS=2", "GOGC=off"} }

// Main launches a command and does not return if this process was started to do that. Otherwise
// it returns at once. It must be the first statement of the program.
func Main(start Start) {
	mainCalled.Store(true)
	if len(os.Args) != 1 || os.Args[0] != name {
		return
	}
	launch(os.NewFile(controlFD, "server"), start)
	syscall.Exit(0) // at once, since the command is gone
}

// launch starts the command that the server orders and ends all that it started, when the
// server asks for it or is gone.
func launch(server *os.File, start Start) {
	l := &launcher{server: server, inbox: make(chan byte)}
	var cmd *exec.Cmd
	err := prepareLauncher()
	if err == nil {
		var confinement []byte
		var files []*os.File
		if cmd, confinement, files, err = readOrder(server, controlFD+1); err == nil {
			go l.read()
			err = l.begin(func() error { return start(cmd, confinement, files) })
		}
	}
	if err != nil {
		var errno syscall.Errno
		errors.As(err, &errno)
		_ = report{reportFailed, uint32(errno)}.send(server)
		_, _ = io.WriteString(server, err.Error())
		return
	}
	pid := cmd.Process.Pid
	_ = cmd.Process.Release() // reap waits for the process
	_ = report{reportStarted, uint32(pid)}.send(server)
	leaveStreams()
	l.wait(pid)
}

// prepareLauncher sets up this process as a launcher.
func prepareLauncher() error {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0) // shown by ps
	// A command must not inherit the connection, or descriptors that the server inherited.
	if err := SealDescriptors(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide the launcher: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the subreaper: %w", err)
	}
	// No signal ends a launcher, only the end of the server. Catch the signals instead of
	// ignoring them: commands inherit ignored signals, but not caught ones.
	caught := make([]os.Signal, 0, 32)
	for n := 1; n < 32; n++ {
		if sig := syscall.Signal(n); sig != unix.SIGCHLD && !signal.Ignored(sig) {
			caught = append(caught, sig)
		}
	}
	signal.Notify(make(chan os.Signal, 1), caught...)
	makeThreads(threads)
	return nil
}

// threads is how many threads a launcher needs at most: one for each processor, and for each
// system call that blocks: to start a command, to end it, to wait for it, for the server and for
// signals.
const threads = 8

// makeThreads makes the runtime start n threads, which it keeps. While a launcher starts a
// command it has the command's limit of processes. If the command has used that up before the
// launcher runs again, the runtime can start no thread, and would end the process.
func makeThreads(n int) {
	var started, ended sync.WaitGroup
	release := make(chan struct{})
	for range n {
		started.Add(1)
		ended.Go(func() {
			runtime.LockOSThread() // so that the others need threads of their own
			defer runtime.UnlockOSThread()
			started.Done()
			<-release
		})
	}
	started.Wait()
	close(release)
	ended.Wait()
}

// leaveStreams replaces the standard streams of this process. They are the command's, and end
// with it.
func leaveStreams() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := range 3 {
		if err != nil {
			_ = unix.Close(fd)
		} else {
			_ = unix.Dup3(null, fd, unix.O_CLOEXEC)
		}
	}
}

// SealDescriptors prevents commands from inheriting the descriptors that this process
// inherited, except standard input, output and error. A program calls it once, before it
// opens any file.
func SealDescriptors() error {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	// Before Linux 5.9 the call is missing, and containers forbid it.
	return sealEach()
}

// sealEach does the same with each descriptor.
func sealEach() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("the files that commands would inherit: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// launcher is a launcher in its own process.
type launcher struct {
	server *os.File
	inbox  chan byte // what the server asks for; closed when the server is gone
}

func (l *launcher) read() {
	defer close(l.inbox)
	var b [1]byte
	for {
		if _, err := io.ReadFull(l.server, b[:]); err != nil {
			return
		}
		l.inbox <- b[0]
	}
}

// begin calls start, which starts the command. If the server disconnects meanwhile, or requests
// the end, begin kills the child before it becomes the command. Executing a program can take
// forever, and the child may have been stopped before.
func (l *launcher) begin(start func() error) (err error) {
	started := make(chan struct{})
	go func() {
		defer close(started)
		err = withRoom(start)
	}()
	for {
		select {
		case <-started:
			return err
		case request, ok := <-l.inbox:
			if !ok || request == endNow {
				end(started)
				<-started
				return err
			}
		}
	}
}

// wait waits until all processes of the command have ended, whose first one is pid, and ends
// them on request.
func (l *launcher) wait(pid int) {
	gone := make(chan struct{})
	go l.reap(pid, gone)
	inbox, ending := l.inbox, false
	var deadline <-chan time.Time
	for {
		select {
		case <-gone:
			return
		case <-deadline:
			return
		case request, ok := <-inbox:
			if !ok {
				inbox, deadline = nil, time.After(lastGrace)
			}
			if request == askToEnd {
				signalAll(descendants(processes(), os.Getpid()), unix.SIGTERM)
			}
			if (!ok || request == endNow) && !ending {
				ending = true
				debug.SetGCPercent(100) // killing can take long
				go end(gone)
			}
		}
	}
}

// reap collects the children of this process, the command's first process pid and its
// orphans, until there are no more. It reports the end of the first one, and of all.
func (l *launcher) reap(pid int, gone chan<- struct{}) {
	defer close(gone)
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			_ = report{kind: reportGone}.send(l.server) // fails when the server is gone
			return
		case ended == pid:
			_ = report{reportExited, uint32(status)}.send(l.server)
		}
	}
}
