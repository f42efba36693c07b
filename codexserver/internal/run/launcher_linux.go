package run

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
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
func Main(confine Confine) {
	mainCalled.Store(true)
	if len(os.Args) != 1 || os.Args[0] != name {
		return
	}
	launch(os.NewFile(controlFD, "server"), confine)
	syscall.Exit(0) // at once, since the command is gone
}

// launch starts the command that the server orders and ends all that it started, when the
// server asks for it or is gone.
func launch(server *os.File, confine Confine) {
	err := prepareLauncher()
	var o ordered
	if err == nil {
		o, err = readOrder(server)
	}
	if err == nil {
		l := &launcher{server: server, inbox: make(chan byte)}
		go l.read()
		err = l.run(o, confine)
	}
	if err != nil {
		var errno syscall.Errno
		errors.As(err, &errno)
		_ = report{reportFailed, uint32(errno)}.send(server)
		_, _ = io.WriteString(server, err.Error())
	}
}

// start starts the command, and returns the id of its first process.
func (o *ordered) start(confine Confine) (pid int, err error) {
	begin := func() error {
		pid, err = syscall.ForkExec(o.path, o.args, &syscall.ProcAttr{
			Env: o.env, Files: []uintptr{0, 1, 2},
			Sys: &syscall.SysProcAttr{Setpgid: true}, // in the launcher's session, so that the server finds it without the launcher
		})
		if err != nil {
			err = &os.PathError{Op: "fork/exec", Path: o.path, Err: err}
		}
		return err
	}
	files := make([]*os.File, o.files)
	for i := range files {
		files[i] = os.NewFile(uintptr(controlFD+1+i), "ordered")
	}
	if o.confinement == "" {
		err = begin()
	} else {
		err = confine(o.confinement, files, begin)
	}
	return pid, err
}

// prepareLauncher sets up this process as a launcher.
func prepareLauncher() error {
	if fd, err := unix.Open("/proc/self/comm", unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		_, _ = unix.Write(fd, []byte(name)) // shown by ps
		_ = unix.Close(fd)
	}
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
	// No signal ends a launcher, only the end of the server. Catch those that would, instead of
	// ignoring them: commands inherit ignored signals, but not caught ones.
	caught := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGTERM, unix.SIGSTKFLT, unix.SIGSYS} {
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	return nil
}

// threads is how many threads a launcher needs at most: one for each processor, and for each
// system call that blocks: to start a command, to end it, to wait for it, for the server and for
// signals.
const threads = 8

// withRoom runs start with a lower limit of processes, which the started process inherits.
// The kernel counts all processes of the user, so a command that reaches its limit leaves
// room for the server and its launchers. Root has no limit.
//
// It lowers only the soft limit, because the hard one cannot be restored. The confinement
// prevents commands from raising it again.
func withRoom(start func() error) error {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil || own.Cur == unix.RLIM_INFINITY {
		return start()
	}
	makeThreads(threads)
	lower := unix.Rlimit{Cur: own.Cur - reserve(own.Cur), Max: own.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &lower); err != nil {
		return err
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NPROC, &own) }() // always allowed up to the hard limit
	return start()
}

// reserve returns how many processes and threads of limit are not for commands.
func reserve(limit uint64) uint64 { return min(limit/2, max(32, min(limit/8, 256))) }

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

// leave replaces the standard streams and the folder of this process. They are the command's, and
// end with it.
func leave() {
	_ = unix.Chdir("/")
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

// run starts the command and waits until all of its processes have ended. It ends them when the
// server asks for it or disconnects, also before the child has become the command: executing a
// program can take forever. The error says why nothing was started.
func (l *launcher) run(o ordered, confine Confine) error {
	started, gone := make(chan error, 1), make(chan struct{})
	pid := 0
	go func() {
		started <- withRoom(func() (err error) {
			pid, err = o.start(confine)
			return err
		})
	}()
	inbox, running, ending := l.inbox, false, false
	var deadline <-chan time.Time
	for {
		select {
		case err := <-started:
			if err != nil {
				return err
			}
			_ = report{reportStarted, uint32(pid)}.send(l.server)
			running = true
			leave()
			go l.reap(pid, gone)
		case <-gone:
			return nil
		case <-deadline:
			return nil
		case request, ok := <-inbox:
			if !ok {
				inbox, deadline = nil, time.After(lastGrace)
			}
			if request == askToEnd {
				signalAll(descendants(processes(), os.Getpid()), unix.SIGTERM)
			}
			if (!ok || request == endNow) && !ending {
				if ending = true; running { // else a collection would wait for the start
					debug.SetGCPercent(100) // killing can take long
				}
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
