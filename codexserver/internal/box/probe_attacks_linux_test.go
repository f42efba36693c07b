package box_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attackProbes are attempts that go around what the other probes try.
var attackProbes = map[string]func(args []string) error{
	// A descriptor that only names a file becomes one that writes it.
	"reopen to write": onLink(func(link string, _ []string) error { return closed(unix.Open(link, unix.O_WRONLY, 0)) }),
	"reopen to read": onLink(func(link string, _ []string) error {
		return closed(unix.Open(link, unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0))
	}),
	"truncate by descriptor": onLink(func(link string, _ []string) error { return unix.Truncate(link, 0) }),
	"chmod by descriptor":    onLink(func(link string, a []string) error { return unix.Chmod(link, mode(a)) }),
	"times by descriptor": onLink(func(link string, _ []string) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, link, make([]unix.Timespec, 2), 0)
	}),
	"create by descriptor": func(a []string) error {
		return byPath(filepath.Dir(a[0]), func(link string) error {
			return closed(unix.Open(filepath.Join(link, filepath.Base(a[0])), unix.O_CREAT|unix.O_WRONLY, 0o600))
		})
	},
	"exchange": func(a []string) error {
		return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
	},
	"whiteout": func(a []string) error {
		return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_WHITEOUT)
	},
	"family": func(a []string) error {
		n := numbers(a)
		return closed(unix.Socket(int(n[0]), int(n[1]), int(n[2])))
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
	"queue a signal": func(a []string) error {
		info := [32]int32{0, 0, -1} // si_code is SI_QUEUE
		_, _, errno := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid(a)), 0, uintptr(unsafe.Pointer(&info)))
		return asError(errno)
	},
	// One system call with numbers.
	"call": func(a []string) error {
		n := [6]uintptr{}
		for i, v := range numbers(a[1:]) {
			n[i] = uintptr(v)
		}
		_, _, errno := unix.Syscall6(calls[a[0]], n[0], n[1], n[2], n[3], n[4], n[5])
		return asError(errno)
	},
}

var calls = map[string]uintptr{
	"fsopen": unix.SYS_FSOPEN, "open_tree": unix.SYS_OPEN_TREE, "pivot_root": unix.SYS_PIVOT_ROOT, "userfaultfd": unix.SYS_USERFAULTFD,
	"perf_event_open": unix.SYS_PERF_EVENT_OPEN, "add_key": unix.SYS_ADD_KEY,
	"ioprio_set": unix.SYS_IOPRIO_SET, "setpriority": unix.SYS_SETPRIORITY, "kcmp": unix.SYS_KCMP,
	"msgctl": unix.SYS_MSGCTL, "ioctl": unix.SYS_IOCTL, "shmget": unix.SYS_SHMGET, "semget": unix.SYS_SEMGET, "msgget": unix.SYS_MSGGET,
	"unshare": unix.SYS_UNSHARE, "clone3": unix.SYS_CLONE3, "setns": unix.SYS_SETNS, "x32": 0x40000000 + 39,
}

// onLink is a probe with the link of [byPath].
func onLink(f func(link string, args []string) error) func(args []string) error {
	return func(a []string) error { return byPath(a[0], func(link string) error { return f(link, a) }) }
}

// byPath calls f with the link in /proc of a descriptor that only names a file.
func byPath(path string, f func(link string) error) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fmt.Sprintf("/proc/self/fd/%d", fd))
}

func numbers(args []string) []int64 {
	all := make([]int64, len(args))
	for i, a := range args {
		n, err := strconv.ParseInt(a, 0, 64)
		if err != nil {
			panic(err)
		}
		all[i] = n
	}
	return all
}
