package run

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// controlFD is the launcher's descriptor of its connection to the server. Those of the confinement follow.
const controlFD = 3

// lastGrace is how long a launcher tries to kill its command.
const lastGrace = 30 * time.Second

// name is os.Args[0] of this program when it is started as a launcher.
const name = "codex-mcp-launch"

// launcherEnviron is the environment of a launcher. With one of the runtime's processors it has fewer threads. There is no
// garbage collection, unless killing takes long.
func launcherEnviron() []string { return []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=512MiB"} }

// Main launches a command and does not return if this process was started to do that. Otherwise
// it returns at once. It must be the first statement of the program.
func Main(confine Confine) {
	mainCalled.Store(true)
	if len(os.Args) != 1 || os.Args[0] != name {
		return
	}
	server := os.NewFile(controlFD, "server")
	if err := launch(server, confine); err != nil {
		var errno syscall.Errno
		errors.As(err, &errno)
		report{reportFailed, uint32(errno), err.Error()}.send(server)
	}
	syscall.Exit(0) // at once, since the command is gone
}

// launch starts the command that the server orders, and waits until all of its processes have
// ended. The error says why nothing was started.
func launch(server *os.File, confine Confine) error {
	o, err := readOrder(os.Environ())
	if err == nil {
		err = prepareLauncher()
	}
	if err != nil {
		return err
	}
	go obey(server)
	o.server = server
	pid, status, after, err := o.start(confine)
	if err != nil {
		return err
	}
	if status == 0 {
		leaveRoom(pid)
	}
	report{kind: reportStarted, value: uint32(pid)}.send(server)
	leave()
	if status != 0 {
		reapRooms(pid, status, after, server)
	} else {
		reap(pid, server)
	}
	return nil
}

// obey ends the command when the server asks for it or is gone, also before the child has become the
// command: executing a program can take forever.
func obey(server *os.File) {
	_, _ = server.Read(make([]byte, 1))
	self, _ := readProcess(os.Getpid())
	pause := 10 * time.Millisecond
	for deadline := time.Now().Add(lastGrace); time.Now().Before(deadline); time.Sleep(pause) {
		end(func() []process { return self.command(func(p process) bool { return p.parent == self.pid }) })
		killHidden()
		pause = min(2*pause, 100*time.Millisecond) // the rest cannot be killed, but may end
	}
	syscall.Exit(0)
}

// reap collects the children of this process, the command's first process pid and its
// orphans, until there are no more. It reports the end of the first one, and of all. Both are one
// report if nothing outlives the first one, so that the server does not ask for the end of what is gone.
func reap(pid int, server *os.File) {
	end := report{kind: reportGone}
	for flags := unix.WALL; ; {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, flags, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			end.send(server)
			return
		case ended == pid:
			pid = -1 // an orphan may have the same later
			end, flags = report{kind: reportLast, value: uint32(status)}, unix.WALL|unix.WNOHANG
		case ended == 0: // others are left
			report{kind: reportExited, value: end.value}.send(server)
			end, flags = report{kind: reportGone}, unix.WALL
		}
	}
}

// order is what a launcher starts. The streams and the folder are its own.
type order struct {
	confinement, path string
	args, env         []string
	server            *os.File // the connection to the server
}

// maxWord is how long a word of an order may be, in bytes: the kernel takes no longer variable than 128 KiB.
const maxWord = 64 << 10

func (o order) words() []string {
	var parts []string
	for part := range slices.Chunk([]byte(o.confinement), maxWord) {
		parts = append(parts, string(part))
	}
	head := []string{o.path, strconv.Itoa(len(parts)), strconv.Itoa(len(o.args))}
	return slices.Concat(head, parts, o.args, o.env)
}

// readOrder reads the words of an order, which are numbered, in the environment of a launcher.
func readOrder(environ []string) (o order, err error) {
	var words []string
	for _, entry := range environ {
		number, word, _ := strings.Cut(entry, "=")
		if number == strconv.Itoa(len(words)) {
			words = append(words, word)
		}
	}
	if len(words) < 3 {
		return o, errors.New("the order is too short")
	}
	parts, err := strconv.Atoi(words[1])
	args, failed := strconv.Atoi(words[2])
	rest := words[3:]
	if err != nil || failed != nil || parts < 0 || args < 0 || parts > len(rest) || args > len(rest)-parts {
		return o, errors.New("the order has too few words")
	}
	confinement, rest := strings.Join(rest[:parts], ""), rest[parts:]
	return order{confinement: confinement, path: words[0], args: rest[:args], env: rest[args:]}, nil
}

// start starts the command, and returns the id of its first process. If the command has rooms, that is the first process
// there, which says by the descriptor status how the command has ended. After is [Rooms.After], or nil.
func (o order) start(confine Confine) (pid, status int, after func() string, err error) {
	begin := func(rooms *Rooms) error {
		return withSignals(func() error {
			if rooms != nil {
				after = rooms.After
				pid, status, err = rooms.start(o)
			} else {
				pid, err = o.forkExec()
			}
			return err
		})
	}
	if o.confinement == "" {
		err = begin(nil)
	} else {
		err = confine(o.confinement, controlFD+1, begin)
	}
	return pid, status, after, err
}

// forkExec starts the first process of a command. That occupies one of the runtime's processors until the program is
// executed, which can take forever.
func (o order) forkExec() (pid int, err error) {
	runtime.GOMAXPROCS(2)
	pid, err = syscall.ForkExec(o.path, o.args, &syscall.ProcAttr{
		Env: o.env, Files: []uintptr{0, 1, 2},
		// In the launcher's session, so that the server finds it without the launcher.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		err = &os.PathError{Op: "fork/exec", Path: o.path, Err: err}
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
	// No signal ends a launcher, only the end of the server. The command does not inherit that: Go gives it the usual
	// action of each signal for which Go had a handler. A handler of [os/signal] would cost a thread, and two switches
	// to it for each signal.
	for _, sig := range deadly {
		if err := setAction(sig, sigIgnore); err != nil {
			return err
		}
	}
	for _, sig := range untouched {
		if err := setAction(sig, sigDefault); err != nil {
			return err
		}
	}
	return nil
}

// deadly are the signals that would end a launcher.
var deadly = []unix.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE,
	unix.SIGSEGV, unix.SIGTERM, unix.SIGSTKFLT, unix.SIGSYS,
}

// untouched are the signals for which Go has no handler, so that a host may have left another action than the usual.
var untouched = []unix.Signal{unix.SIGCONT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU}

// leaveRoom lowers a command's limit of processes, which its own inherit. The kernel counts all processes of the
// user, so a command that reaches its limit leaves room for the server and its launchers. Root has no limit.
//
// It lowers only the soft limit. The confinement prevents commands from raising it again.
func leaveRoom(pid int) {
	if limit, err := commandLimit(); err == nil {
		// fails for a setuid program, which may have another user's limit
		_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil)
	}
}

// commandLimit returns a command's limit of processes.
func commandLimit() (limit unix.Rlimit, err error) {
	if err = unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err == nil && limit.Cur != unix.RLIM_INFINITY {
		limit.Cur -= min(limit.Cur/2, max(32, min(limit.Cur/8, 256)))
	}
	return limit, err
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
	entries, err := os.ReadDir("/proc/self/fd") // the kernel is older than 5.11, or a filter forbids it
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
