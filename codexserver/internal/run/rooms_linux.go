package run

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rooms are namespaces of a command's own. Their first process is a copy of the launcher that makes system calls and no
// others: it furnishes the rooms, starts the command, and reaps what that leaves. When it ends, the kernel ends all others.
// It ends with the last of them, and with the launcher, whoever kills that.
type Rooms struct {
	// Flags are those of clone(2). The ids of the process stay what they are in a new user namespace.
	Flags uintptr
	// First are what the first process does, and Last what the command does before its program is executed.
	First, Last []Step
	// Watch, unless it is nil, returns why the command must end, when it must. It gets the id of the first process, with whose
	// end what it returns loses its meaning.
	Watch func(pid int) string
	// After, unless it is nil, returns what a command that has ended must not have done, or "".
	After func() string
	// Files is how many files the command may have open, see [OriginalFiles].
	Files uint64
}

// Step is one system call.
type Step struct {
	Name string // for an error
	Call uintptr
	// Args are numbers, [Before], texts, and pointers to what must not change any more.
	Args []any
	// Optional is how many steps are left out if it fails, with itself. With 0 nothing is started.
	Optional int
}

// Before, as an argument, stands for what the step before has returned.
const Before uintptr = 1 << 62

// RoomsError reports that the rooms could not be furnished. Nothing was started.
type RoomsError struct {
	Step string
	Err  syscall.Errno
}

func (e *RoomsError) Error() string { return "namespaces of its own: " + e.Step + ": " + e.Err.Error() }

func (e *RoomsError) Unwrap() error { return e.Err }

// call is a step as the kernel takes it.
type call struct {
	nr   uintptr
	args [6]uintptr
	skip int
}

// room is all that the processes read that are copies of the launcher. A copy has one thread and no Go runtime: it
// allocates nothing, grows no stack and handles no signal.
type room struct {
	flags            uintptr
	first, last      []call
	path, slash      *byte
	argv, envv       []*byte
	go0, go1         uintptr // a pipe by which the launcher lets the first process begin
	failed0, failed1 uintptr // one by which a copy says what failed; the execution of the command closes it
	// one by which the first process says how the command has ended, and whether no other process is left
	status0, status1 uintptr
	limits           [2]unix.Rlimit
	mask             uint64 // of signals, that of the command
	word             [2]uint32
	alive            []any // what is only pointed to
}

// compile makes calls of steps, and keeps what they point to.
func (r *room) compile(steps []Step) (calls []call) {
	for _, step := range steps {
		c := call{nr: step.Call, skip: step.Optional}
		for i, arg := range step.Args {
			switch arg := arg.(type) {
			case int:
				c.args[i] = uintptr(arg)
			case uintptr:
				c.args[i] = arg
			case string:
				text := append([]byte(arg), 0)
				r.alive, c.args[i] = append(r.alive, text), uintptr(unsafe.Pointer(&text[0]))
			case unsafe.Pointer:
				r.alive, c.args[i] = append(r.alive, arg), uintptr(arg)
			default:
				panic(fmt.Sprintf("run: a step with %T", arg))
			}
		}
		calls = append(calls, c)
	}
	return calls
}

// start starts the order's command in rooms, and returns the id of their first process and where that says how the command
// has ended. The calling thread stays the goroutine's, because the first process ends with it.
func (rooms *Rooms) start(o order) (pid, status int, err error) {
	runtime.LockOSThread()
	r := &room{flags: rooms.Flags | uintptr(unix.SIGCHLD)}
	r.first, r.last = r.compile(rooms.First), r.compile(rooms.Last)
	r.slash, _ = syscall.BytePtrFromString("/")
	if o.path != "" {
		r.path, err = syscall.BytePtrFromString(o.path)
	}
	if err == nil {
		r.argv, err = syscall.SlicePtrFromStrings(o.args)
	}
	if err == nil {
		r.envv, err = syscall.SlicePtrFromStrings(o.env)
	}
	if err != nil {
		return 0, 0, err
	}
	r.limits[0], err = commandLimit()
	if err = errors.Join(err, unix.Getrlimit(unix.RLIMIT_NOFILE, &r.limits[1])); err != nil {
		return 0, 0, fmt.Errorf("limits: %w", err)
	}
	if rooms.Files > 0 {
		r.limits[1].Cur = min(rooms.Files, r.limits[1].Max)
	}
	for _, pipe := range [][2]*uintptr{{&r.go0, &r.go1}, {&r.failed0, &r.failed1}, {&r.status0, &r.status1}} {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return 0, 0, fmt.Errorf("pipe: %w", err)
		}
		*pipe[0], *pipe[1] = uintptr(p[0]), uintptr(p[1])
	}
	id, failure := r.clone(rooms.Flags&unix.CLONE_NEWUSER != 0)
	for _, fd := range []uintptr{r.go0, r.failed1, r.status1} {
		_ = unix.Close(int(fd))
	}
	if failure != 0 {
		return 0, 0, &RoomsError{"clone", failure}
	}
	if rooms.Flags&unix.CLONE_NEWUSER != 0 {
		if err := mapIDs(int(id)); err != nil {
			return 0, 0, &RoomsError{"ids", errnoOf(err)}
		}
	}
	if _, err := unix.Write(int(r.go1), []byte{1}); err != nil {
		return 0, 0, &RoomsError{"begin", errnoOf(err)}
	}
	step, errno, failed := readPair(int(r.failed0)) // until the command's program is executed
	_ = unix.Close(int(r.failed0))
	runtime.KeepAlive(r)
	if failed {
		return 0, 0, r.failure(rooms, o, step, syscall.Errno(errno))
	}
	if rooms.Watch != nil {
		go rooms.watch(int(id), o.server)
	}
	return int(id), int(r.status0), nil
}

// readPair reads two numbers, which are written at once, or reports that there are none.
func readPair(fd int) (first, second uint32, ok bool) {
	var b [8]byte
	n, err := unix.Read(fd, b[:])
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(fd, b[:])
	}
	return binary.NativeEndian.Uint32(b[:]), binary.NativeEndian.Uint32(b[4:]), n == len(b)
}

// watch ends the rooms if they must end, and says why. It ends with this process.
func (rooms *Rooms) watch(pid int, server *os.File) {
	if why := rooms.Watch(pid); why != "" {
		report{kind: reportBroken, text: why}.send(server)
		_ = unix.Kill(pid, unix.SIGKILL) // it is not reaped before this process ends
	}
}

// failure says what failed.
func (r *room) failure(rooms *Rooms, o order, step uint32, errno syscall.Errno) error {
	all := append(append([]Step{}, rooms.First...), rooms.Last...)
	switch {
	case step == stepExec:
		return &os.PathError{Op: "fork/exec", Path: o.path, Err: errno}
	case int(step) < len(all):
		return &RoomsError{all[step].Name, errno}
	}
	return &RoomsError{"begin", errno}
}

const (
	stepExec  = 1 << 16 // stands for the execution of the command
	stepOther = stepExec + 1
)

func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return unix.EINVAL
	}
	return errno
}

// mapIDs maps the user and the group of this process, in the user namespace of another one, to themselves.
func mapIDs(pid int) error {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	user, group := strconv.Itoa(os.Getuid()), strconv.Itoa(os.Getgid())
	for _, file := range [][2]string{{"setgroups", "deny"}, {"uid_map", user + " " + user + " 1"},
		{"gid_map", group + " " + group + " 1"}} {
		fd, err := unix.Open(dir+file[0], unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			_, err = unix.Write(fd, []byte(file[1]))
			err = errors.Join(err, unix.Close(fd))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clone makes the first process. The files of one that is not dumpable, such as the map of its ids, belong to root, so that
// it is dumpable, and with it this process, until it begins. Its memory has no more than the command's words.
func (r *room) clone(dumpable bool) (pid uintptr, errno syscall.Errno) {
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	if dumpable {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) // otherwise the map cannot be written
		defer unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
	all := ^uint64(0)
	_, _, errno = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)),
		uintptr(unsafe.Pointer(&r.mask)), 8, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	pid, errno = r.fork()
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&r.mask)), 0, 8, 0,
		0)
	return pid, errno
}

// fork returns in the launcher alone.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (r *room) fork() (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, r.flags, 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		return pid, errno
	}
	r.begin()
	for { // not reached
		_, _, _ = syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 1, 0, 0, 0, 0, 0)
	}
}

// begin is the first process.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (r *room) begin() {
	_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOSE, r.go1, 0, 0, 0, 0, 0)
	n, _, _ := syscall.RawSyscall6(unix.SYS_READ, r.go0, uintptr(unsafe.Pointer(&r.word)), 1, 0, 0, 0)
	if n != 1 { // the launcher has ended
		return
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0, 0)
	var action [4]uintptr // the usual one
	for sig := uintptr(1); sig <= 64; sig++ {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_SETSID, 0, 0, 0, 0, 0, 0)
	if !r.perform(r.first, 0) {
		return
	}
	command, errno := vfork()
	switch {
	case errno != 0:
		r.fails(stepOther, syscall.Errno(errno))
		return
	case command == 0:
		r.exec()
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_CHDIR, uintptr(unsafe.Pointer(r.slash)), 0, 0, 0, 0, 0)
	for fd := uintptr(0); fd < 3; fd++ { // they are the command's, and end with it
		_, _, _ = syscall.RawSyscall6(unix.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOSE, r.failed1, 0, 0, 0, 0, 0)
	r.reap(command)
}

// exec executes the command's program, or nothing if there is none. It does not return: what calls it is the first process's
// memory, too, which goes on there.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (r *room) exec() {
	_, _, _ = syscall.RawSyscall6(unix.SYS_SETPGID, 0, 0, 0, 0, 0, 0)
	_, _, _ = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NPROC, uintptr(unsafe.Pointer(&r.limits[0])), 0, 0,
		0)
	_, _, _ = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&r.limits[1])), 0,
		0, 0)
	if r.perform(r.last, uintptr(len(r.first))) && r.path != nil {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&r.mask)), 0, 8,
			0, 0)
		_, _, errno := syscall.RawSyscall6(
			unix.SYS_EXECVE, uintptr(unsafe.Pointer(r.path)), uintptr(unsafe.Pointer(&r.argv[0])),
			uintptr(unsafe.Pointer(&r.envv[0])), 0, 0, 0)
		r.fails(stepExec, errno)
	}
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}

// perform makes calls until one fails, which it reports.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (r *room) perform(calls []call, before uintptr) bool {
	var result uintptr
	for i := 0; i < len(calls); i++ {
		c := &calls[i]
		for k := range c.args {
			if c.args[k] == Before {
				c.args[k] = result
			}
		}
		n, _, errno := syscall.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		if errno != 0 && c.skip == 0 {
			r.fails(before+uintptr(i), errno)
			return false
		}
		if errno != 0 {
			i += c.skip - 1
		}
		result = n
	}
	return true
}

//go:nosplit
//go:norace
//go:nocheckptr
func (r *room) fails(step uintptr, errno syscall.Errno) {
	r.word[0], r.word[1] = uint32(step), uint32(errno)
	_, _, _ = syscall.RawSyscall6(unix.SYS_WRITE, r.failed1, uintptr(unsafe.Pointer(&r.word)), 8, 0, 0, 0)
}

// reap collects all children until there are no more, and says how the command has ended.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (r *room) reap(command uintptr) {
	flags := uintptr(unix.WALL)
	for {
		var status uint32
		ended, _, errno := syscall.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), flags, 0,
			0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0: // ECHILD
			if flags != unix.WALL {
				r.says(1)
			}
			return
		case ended == command:
			command = ^uintptr(0) // an orphan may have the same id later
			r.word[0], flags = status, unix.WALL|unix.WNOHANG
		case ended == 0: // others are left
			r.says(0)
			flags = unix.WALL
		}
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (r *room) says(last uint32) {
	r.word[1] = last
	_, _, _ = syscall.RawSyscall6(unix.SYS_WRITE, r.status1, uintptr(unsafe.Pointer(&r.word)), 8, 0, 0, 0)
}

// reapRooms reports the end of the command, and then that of the rooms.
func reapRooms(pid, said int, after func() string, server *os.File) {
	status, last, known := readPair(said)
	if after != nil {
		if why := after(); why != "" {
			report{kind: reportBroken, text: why}.send(server)
		}
	}
	if !known {
		status = uint32(unix.SIGKILL) // as it is if the first process is killed
	}
	if known && last == 0 {
		report{kind: reportExited, value: status}.send(server)
	}
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if known && last == 0 {
		report{kind: reportGone}.send(server)
		return
	}
	report{kind: reportLast, value: status}.send(server)
}

// OriginalFiles is how many files this process might have open before Go raised that limit, which its commands get. Go
// keeps it to itself, and sets it for each program that it starts. So one is looked at before it begins. It is 0 if that fails.
var OriginalFiles = sync.OnceValue(func() uint64 {
	found := make(chan uint64)
	go func() {
		runtime.LockOSThread() // which traces it, and ends
		limit, err := limitOfStarted()
		if err != nil {
			limit = 0
		}
		found <- limit
	}()
	return <-found
})

func limitOfStarted() (files uint64, err error) {
	pid, err := syscall.ForkExec("/proc/self/exe", []string{name},
		&syscall.ProcAttr{Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		return 0, err
	}
	var status unix.WaitStatus
	var limit unix.Rlimit
	_, err = unix.Wait4(pid, &status, 0, nil)
	if err == nil && status.Stopped() {
		err = unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit)
	}
	_ = unix.Kill(pid, unix.SIGKILL)
	_, _ = unix.Wait4(pid, &status, 0, nil)
	return limit.Cur, err
}
