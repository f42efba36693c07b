package box_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// probeWord makes the test program try one thing and print the result.
const probeWord = "sandbox-probe"

// eachProbe makes it make the attempts of a file, each on a thread of its own, and print a line for each.
const eachProbe = "each"

// parent as an argument of a probe stands for the process id of its parent.
const parent = "the-parent"

// probe returns "ok", or the name of the error number.
func probe(name string, args ...string) string {
	for i, arg := range args {
		if arg == parent {
			args[i] = strconv.Itoa(os.Getppid())
		}
	}
	err := fmt.Errorf("no probe is called %s", name)
	if f := probes[name]; f != nil {
		err = f(args)
	} else if f := hostProbes[name]; f != nil {
		err = f(args)
	}
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// probeEach makes the attempts of a file. What an attempt changes of its thread ends with the thread, and so
// does what the thread traces.
func probeEach(file string) {
	runtime.LockOSThread() // so that no attempt gets the main thread, which does not end
	var all []attempt
	list, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(list, &all)
	}
	if err != nil {
		log.Fatal(err)
	}
	for _, one := range all {
		if err := os.Chdir(filepath.Join(one.Base, "work")); err != nil {
			log.Fatal(err)
		}
		said := make(chan string)
		go func() {
			runtime.LockOSThread()
			said <- probe(one.Probe[0], one.Probe[1:]...)
		}()
		fmt.Println(<-said)
	}
}

// probes are what a command may try, in a working folder next to a folder ../outside. See fixture.
var probes = map[string]func(args []string) error{
	// Files.
	"write":         func(a []string) error { return os.WriteFile(a[0], []byte("x"), 0o666) },
	"read":          func(a []string) error { _, err := os.ReadFile(a[0]); return err },
	"append":        func(a []string) error { return openFile(a[0], os.O_WRONLY|os.O_APPEND) },
	"open rw":       func(a []string) error { return openFile(a[0], os.O_RDWR) },
	"truncate":      func(a []string) error { return os.Truncate(a[0], 0) },
	"read truncate": func(a []string) error { return openFile(a[0], os.O_RDONLY|os.O_TRUNC) },
	"mkdir":         func(a []string) error { return os.Mkdir(a[0], 0o777) },
	"remove":        func(a []string) error { return os.Remove(a[0]) },
	"rename":        func(a []string) error { return os.Rename(a[0], a[1]) },
	"link":          func(a []string) error { return os.Link(a[0], a[1]) },
	"symlink":       func(a []string) error { return os.Symlink(a[0], a[1]) },
	"bind":          func(a []string) error { return listen("unix", a[0]) },
	"link then write": func(a []string) error {
		if err := os.Link(a[0], "linked"); err != nil {
			return err
		}
		return os.WriteFile("linked", []byte("x"), 0o666)
	},
	"handle": func(a []string) error {
		h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
		if err != nil {
			return err
		}
		dir, err := unix.Open(".", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return closed(unix.OpenByHandleAt(dir, h, unix.O_RDONLY))
	},
	// What belongs to files.
	"chmod": func(a []string) error { return os.Chmod(a[0], 0o700) },
	"chown": func(a []string) error { return os.Chown(a[0], os.Getuid(), os.Getgid()) },
	"times": func(a []string) error { return os.Chtimes(a[0], time.Unix(1, 0), time.Unix(1, 0)) },
	// Other processes: the argument is the server's process.
	"signal":      func(a []string) error { return unix.Kill(pid(a), 0) },
	"ptrace":      func(a []string) error { return unix.PtraceSeize(pid(a)) },
	"read memory": func(a []string) error { return openFile("/proc/"+a[0]+"/mem", os.O_RDONLY) },
	"environ":     func(a []string) error { _, err := os.ReadFile("/proc/" + a[0] + "/environ"); return err },
	"vm read": func(a []string) error {
		b := make([]byte, 1)
		_, err := unix.ProcessVMReadv(pid(a), []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&b[0])), Len: 1}}, 0)
		return err
	},
	"signal threads": onThreads(func(pid, tid int) error { return unix.Tgkill(pid, tid, 0) }),
	"kill threads":   onThreads(func(_, tid int) error { return unix.Kill(tid, 0) }),
	"queue to threads": onThreads(func(_, tid int) error {
		info := [128]byte{8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff} // SI_QUEUE
		return raw(unix.SYS_RT_SIGQUEUEINFO, uintptr(tid), 0, uintptr(unsafe.Pointer(&info)))
	}),
	"pidfd of threads": onThreads(func(_, tid int) error {
		return signalled(unix.PidfdOpen(tid, unix.O_EXCL)) // PIDFD_THREAD
	}),
	"pidfd of threads' folders": onThreads(func(_, tid int) error {
		return signalled(unix.Open(fmt.Sprintf("/proc/%d", tid), unix.O_RDONLY|unix.O_DIRECTORY, 0))
	}),
	"signal threads for files": onThreads(func(_, tid int) error {
		_ = owner(unix.F_SETOWN, uintptr(tid))
		return unix.EPERM // the test looks whether a signal arrived
	}),
	"signal threads for files, the new way": onThreads(func(_, tid int) error {
		return owner(unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&[2]int32{0, int32(tid)})))
	}),
	"signal threads for sockets": onThreads(func(_, tid int) error {
		return owner(0, uintptr(unsafe.Pointer(&[1]int32{int32(tid)})))
	}),
	"threads' environ": onThreads(func(pid, tid int) error { return openMemory(fmt.Sprintf("/proc/%d/task/%d/environ", pid, tid)) }),
	"threads' files": onThreads(func(pid, tid int) error {
		_, err := os.Readlink(fmt.Sprintf("/proc/%d/task/%d/fd/0", pid, tid))
		return err
	}),
	"threads' memory": onThreads(func(pid, tid int) error { return openMemory(fmt.Sprintf("/proc/%d/task/%d/mem", pid, tid)) }),

	"dial": func(a []string) error { return dial(a[0], a[1]) },
	// The machine.
	"mount": func(a []string) error {
		err := unix.Mount("tmpfs", a[0], "tmpfs", 0, "")
		if err == nil {
			return unix.Unmount(a[0], unix.MNT_DETACH)
		}
		return err
	},
	"sethostname": func([]string) error {
		name, err := os.Hostname()
		if err != nil {
			return err
		}
		return unix.Sethostname([]byte(name))
	},
	"namespaces": func([]string) error {
		cmd := exec.Command("/proc/self/exe", probeWord, "mount", ".")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.Output()
		if err == nil && string(out) != "ok" {
			err = errors.New(string(out))
		}
		return err
	},
	// The process itself.
	"privileges": func([]string) error {
		v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		return differs(err, v, 1)
	},
	"setuid": func(a []string) error { // a program that belongs to root and says so
		out, err := exec.Command(a[0], probeWord, "uid").Output()
		return differs(err, string(out), strconv.Itoa(os.Getuid()))
	},
	"uid": func([]string) error { fmt.Print(os.Geteuid()); syscall.Exit(0); return nil },
	"descriptors": func([]string) error {
		dir, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return err
		}
		for _, entry := range dir {
			if to, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && strings.Contains(to, "server-only") {
				return fmt.Errorf("%s -> %s", entry.Name(), to)
			}
		}
		return nil
	},
	"variable": func(a []string) error {
		value, ok := os.LookupEnv(a[0])
		return differs(nil, fmt.Sprintf("%t %s", ok, value), a[1])
	},
	// One system call or two.
	"call":         call,
	"tmpfile with": func(a []string) error { return closed(unix.Open(a[0], unix.O_TMPFILE|unix.O_WRONLY, mode(a))) },
	"list":         func(a []string) error { _, err := os.ReadDir(a[0]); return err },
	// The attributes of a file besides its mode.
	"setflags": onFile(func(fd int, _ []string) error {
		flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		if err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags)
	}),
	"fssetxattr": onFile(func(fd int, _ []string) error {
		var attr [28]byte
		if err := control(fd, 0x801c581f, unsafe.Pointer(&attr)); err != nil { // FS_IOC_FSGETXATTR
			return err
		}
		return control(fd, 0x401c5820, unsafe.Pointer(&attr))
	}),
	"file_setattr": func(a []string) error {
		path, err := unix.BytePtrFromString(a[0])
		if err != nil {
			return err
		}
		var attr [24]byte
		for _, nr := range []uintptr{unix.SYS_FILE_GETATTR, unix.SYS_FILE_SETATTR} {
			_, _, errno := unix.Syscall6(nr, ^uintptr(99), uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&attr)), 24, 0, 0)
			if errno != 0 {
				return errno
			}
		}
		return nil
	},
	"verity": onFile(func(fd int, _ []string) error {
		arg := unix.FsverityEnableArg{Version: 1, Hash_algorithm: 1, Block_size: 4096}
		return control(fd, unix.FS_IOC_ENABLE_VERITY, unsafe.Pointer(&arg))
	}),
	"create by descriptor": func(a []string) error {
		dir, err := unix.Open(filepath.Dir(a[0]), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		return closed(unix.Open(fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(a[0])), unix.O_CREAT|unix.O_WRONLY, 0o600))
	},
	"signal by descriptor": func(a []string) error { return signalled(unix.PidfdOpen(pid(a), 0)) },
	"take a descriptor": func(a []string) error {
		fd, err := unix.PidfdOpen(pid(a), 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return closed(unix.PidfdGetfd(fd, 2, 0))
	},
	// Limits of a process, or of this one if it is 0.
	"prlimit": func(a []string) error {
		var limit unix.Rlimit
		if err := unix.Prlimit(pid(a), unix.RLIMIT_CORE, nil, &limit); err != nil {
			return err
		}
		return unix.Prlimit(pid(a), unix.RLIMIT_CORE, &limit, nil)
	},
}

func differs[T comparable](err error, got, want T) error {
	if err == nil && got != want {
		err = fmt.Errorf("%v instead of %v", got, want)
	}
	return err
}

func openFile(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func pid(args []string) int { return int(numbers(args[:1])[0]) }

// openMemory opens a file that holds a thread's memory. Some kernels open it for a thread
// that has ended, and it is empty then.
func openMemory(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
		return unix.ESRCH
	}
	return nil // other read errors are fine: nothing has to be mapped at the beginning
}

// onThreads is a probe that calls f for each thread of a process. It succeeds as soon as one call does,
// and otherwise returns the error of a thread that had not ended.
func onThreads(f func(pid, tid int) error) func(args []string) error {
	return func(a []string) error {
		tasks, _ := os.ReadDir("/proc/" + a[0] + "/task") // what cannot be read has no threads
		last := errors.New("no threads")
		for _, task := range tasks {
			switch err := f(pid(a), pid([]string{task.Name()})); {
			case err == nil:
				return nil
			case !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENOENT):
				last = err
			}
		}
		return last
	}
}

// signalled sends nothing to the process of a descriptor.
func signalled(fd int, err error) error {
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.PidfdSendSignal(fd, 0, nil, 0)
}

// owner makes another process receive SIGUSR2 for input on a socket, and writes some. It
// uses fcntl, or ioctl when the command is 0.
func owner(command int, who uintptr) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	call, number := uintptr(unix.SYS_FCNTL), uintptr(command)
	if command == 0 {
		call, number = unix.SYS_IOCTL, 0x8901 // FIOSETOWN
	}
	if err := raw(call, uintptr(pair[0]), number, who); err != nil {
		return err
	}
	const setSignal = 10 // F_SETSIG
	if err := raw(unix.SYS_FCNTL, uintptr(pair[0]), setSignal, uintptr(unix.SIGUSR2)); err != nil {
		return err
	}
	if err := raw(unix.SYS_FCNTL, uintptr(pair[0]), unix.F_SETFL, unix.O_ASYNC); err != nil {
		return err
	}
	_, err = unix.Write(pair[1], []byte("x"))
	return err
}

func listen(network, address string) error {
	l, err := net.Listen(network, address)
	if err == nil {
		l.Close()
	}
	return err
}

func dial(network, address string) error {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "x")
	return err
}

func raw(nr, a, b, c uintptr) error {
	_, _, errno := unix.Syscall(nr, a, b, c)
	return asError(errno)
}

func TestMain(m *testing.M) {
	box.Main()
	if len(os.Args) > 1 && os.Args[1] == probeWord {
		if os.Args[2] == eachProbe {
			probeEach(os.Args[3])
		} else {
			fmt.Print(probe(os.Args[2], os.Args[3:]...))
		}
		syscall.Exit(0) // os.Exit takes a second under the race detector
	}
	os.Exit(memdir.Run(m))
}

// calls are system calls by name, which the probe "call" makes. Those that are old are amd64's alone.
var calls = map[string]uintptr{
	"accept": unix.SYS_ACCEPT, "add_key": unix.SYS_ADD_KEY, "bind": unix.SYS_BIND, "bpf": unix.SYS_BPF, "clone3": unix.SYS_CLONE3, "connect": unix.SYS_CONNECT, "fchmod": unix.SYS_FCHMOD, "fchmodat": unix.SYS_FCHMODAT,
	"fchmodat2": unix.SYS_FCHMODAT2, "fchown": unix.SYS_FCHOWN, "fremovexattr": unix.SYS_FREMOVEXATTR, "fsetxattr": unix.SYS_FSETXATTR,
	"fsopen": unix.SYS_FSOPEN, "io_uring_setup": unix.SYS_IO_URING_SETUP, "ioctl": unix.SYS_IOCTL, "ioprio_set": unix.SYS_IOPRIO_SET,
	"kcmp": unix.SYS_KCMP, "keyctl": unix.SYS_KEYCTL, "listen": unix.SYS_LISTEN, "lremovexattr": unix.SYS_LREMOVEXATTR, "lsetxattr": unix.SYS_LSETXATTR,
	"mknodat": unix.SYS_MKNODAT, "mq_open": unix.SYS_MQ_OPEN, "msgctl": unix.SYS_MSGCTL, "msgget": unix.SYS_MSGGET, "open_tree": unix.SYS_OPEN_TREE,
	"openat": unix.SYS_OPENAT, "openat2": unix.SYS_OPENAT2, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "pivot_root": unix.SYS_PIVOT_ROOT,
	"removexattr": unix.SYS_REMOVEXATTR, "removexattrat": unix.SYS_REMOVEXATTRAT, "renameat2": unix.SYS_RENAMEAT2,
	"rt_sigqueueinfo": unix.SYS_RT_SIGQUEUEINFO, "sched_setaffinity": unix.SYS_SCHED_SETAFFINITY, "sched_setattr": unix.SYS_SCHED_SETATTR,
	"sched_setparam": unix.SYS_SCHED_SETPARAM, "sched_setscheduler": unix.SYS_SCHED_SETSCHEDULER, "semget": unix.SYS_SEMGET, "sendto": unix.SYS_SENDTO, "setns": unix.SYS_SETNS,
	"setpriority": unix.SYS_SETPRIORITY, "setsockopt": unix.SYS_SETSOCKOPT, "setxattr": unix.SYS_SETXATTR, "setxattrat": unix.SYS_SETXATTRAT, "shmat": unix.SYS_SHMAT,
	"shmget": unix.SYS_SHMGET, "socket": unix.SYS_SOCKET, "socketpair": unix.SYS_SOCKETPAIR, "truncate": unix.SYS_TRUNCATE, "umount2": unix.SYS_UMOUNT2,
	"unshare": unix.SYS_UNSHARE, "userfaultfd": unix.SYS_USERFAULTFD, "utimensat": unix.SYS_UTIMENSAT, "x32": 0x40000000 + 39,

	"old open": 2, "old creat": 85, "old chmod": 90, "old chown": 92, "old lchown": 94, "old utime": 132, "old mknod": 133, "old utimes": 235,
	"old futimesat": 261,
}

// call makes one system call. An argument is a number, the address of some ("words:1,2") or of a text
// ("text:x"), a socket of TCP ("socket"), the descriptor of a file that is open for reading ("file:x"), or the link in /proc of one that
// only names a file ("link:x"), through which an attacker opens it again.
func call(a []string) error {
	nr, ok := calls[a[0]]
	if !ok || strings.HasPrefix(a[0], "old ") && runtime.GOARCH != "amd64" {
		return fmt.Errorf("no call is called %s", a[0])
	}
	var n [6]uintptr
	var alive []any
	for i, argument := range a[1:] {
		kind, value, _ := strings.Cut(argument, ":")
		switch kind {
		case "words":
			words := numbers(strings.Split(value, ","))
			alive, n[i] = append(alive, words), uintptr(unsafe.Pointer(&words[0]))
		case "text":
			text := append([]byte(value), 0)
			alive, n[i] = append(alive, text), uintptr(unsafe.Pointer(&text[0]))
		case "link":
			fd, err := unix.Open(value, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			text := fmt.Appendf(nil, "/proc/self/fd/%d\x00", fd)
			alive, n[i] = append(alive, text), uintptr(unsafe.Pointer(&text[0]))
		case "socket":
			fd, err := given(0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			n[i] = uintptr(fd)
		case "file":
			file, err := os.Open(value)
			if err != nil {
				return err
			}
			defer file.Close()
			n[i] = file.Fd()
		default:
			n[i] = uintptr(numbers([]string{argument})[0])
		}
	}
	_, _, errno := unix.Syscall6(nr, n[0], n[1], n[2], n[3], n[4], n[5])
	runtime.KeepAlive(alive)
	return asError(errno)
}

func mode(a []string) uint32 {
	n, err := strconv.ParseUint(a[1], 8, 32)
	if err != nil {
		panic(err)
	}
	return uint32(n)
}

func closed(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func onFile(f func(fd int, args []string) error) func(args []string) error {
	return func(a []string) error {
		file, err := os.Open(a[0])
		if err != nil {
			return err
		}
		defer file.Close()
		return f(int(file.Fd()), a)
	}
}

func control(fd int, request uintptr, arg unsafe.Pointer) error {
	return raw(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
}

func asError(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

func openQueue(name string, flags int) (int, error) {
	p, err := unix.BytePtrFromString(strings.TrimPrefix(name, "/"))
	if err != nil {
		return -1, err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), uintptr(flags), 0o600, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// numbers reads numbers in any base, also those that need all bits.
func numbers(args []string) []uint64 {
	all := make([]uint64, len(args))
	for i, a := range args {
		n, err := strconv.ParseUint(strings.TrimPrefix(a, "-"), 0, 64)
		if err != nil {
			panic(err)
		}
		if all[i] = n; a[0] == '-' {
			all[i] = -n
		}
	}
	return all
}
