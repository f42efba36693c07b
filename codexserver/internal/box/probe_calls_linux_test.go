package box_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls are system calls by name, which the probe "call" makes. Those that are old are amd64's alone.
var calls = map[string]uintptr{
	"add_key": unix.SYS_ADD_KEY, "bpf": unix.SYS_BPF, "clone3": unix.SYS_CLONE3, "fchmod": unix.SYS_FCHMOD, "fchmodat": unix.SYS_FCHMODAT,
	"fchmodat2": unix.SYS_FCHMODAT2, "fchown": unix.SYS_FCHOWN, "fremovexattr": unix.SYS_FREMOVEXATTR, "fsetxattr": unix.SYS_FSETXATTR,
	"fsopen": unix.SYS_FSOPEN, "io_uring_setup": unix.SYS_IO_URING_SETUP, "ioctl": unix.SYS_IOCTL, "ioprio_set": unix.SYS_IOPRIO_SET,
	"kcmp": unix.SYS_KCMP, "keyctl": unix.SYS_KEYCTL, "lremovexattr": unix.SYS_LREMOVEXATTR, "lsetxattr": unix.SYS_LSETXATTR,
	"mknodat": unix.SYS_MKNODAT, "mq_open": unix.SYS_MQ_OPEN, "msgctl": unix.SYS_MSGCTL, "msgget": unix.SYS_MSGGET, "open_tree": unix.SYS_OPEN_TREE,
	"openat": unix.SYS_OPENAT, "openat2": unix.SYS_OPENAT2, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "pivot_root": unix.SYS_PIVOT_ROOT,
	"removexattr": unix.SYS_REMOVEXATTR, "removexattrat": unix.SYS_REMOVEXATTRAT, "renameat2": unix.SYS_RENAMEAT2,
	"rt_sigqueueinfo": unix.SYS_RT_SIGQUEUEINFO, "sched_setaffinity": unix.SYS_SCHED_SETAFFINITY, "sched_setattr": unix.SYS_SCHED_SETATTR,
	"sched_setparam": unix.SYS_SCHED_SETPARAM, "sched_setscheduler": unix.SYS_SCHED_SETSCHEDULER, "semget": unix.SYS_SEMGET, "setns": unix.SYS_SETNS,
	"setpriority": unix.SYS_SETPRIORITY, "setxattr": unix.SYS_SETXATTR, "setxattrat": unix.SYS_SETXATTRAT, "shmat": unix.SYS_SHMAT,
	"shmget": unix.SYS_SHMGET, "socket": unix.SYS_SOCKET, "socketpair": unix.SYS_SOCKETPAIR, "truncate": unix.SYS_TRUNCATE, "umount2": unix.SYS_UMOUNT2,
	"unshare": unix.SYS_UNSHARE, "userfaultfd": unix.SYS_USERFAULTFD, "utimensat": unix.SYS_UTIMENSAT, "x32": 0x40000000 + 39,

	"old open": 2, "old creat": 85, "old chmod": 90, "old chown": 92, "old lchown": 94, "old utime": 132, "old mknod": 133, "old utimes": 235,
	"old futimesat": 261,
}

// call makes one system call. An argument is a number, the address of some ("words:1,2") or of a text
// ("text:x"), the descriptor of a file that is open for reading ("file:x"), or the link in /proc of one that
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

// callProbes are attempts that one system call or two make.
var callProbes = map[string]func(args []string) error{
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

// onFile is a probe with an open file.
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

// openQueue opens a POSIX message queue.
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
