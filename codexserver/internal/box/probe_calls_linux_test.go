package box_test

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// callProbes are attempts that are one system call each.
var callProbes = map[string]func(args []string) error{
	// Modes: the arguments are a path and the mode in octal.
	"chmod to":     withMode(unix.Chmod),
	"fchmod to":    onFile(func(fd int, a []string) error { return unix.Fchmod(fd, mode(a)) }),
	"fchmodat2 to": withMode(func(path string, mode uint32) error { return callPath(unix.SYS_FCHMODAT2, path, uintptr(mode), 0) }),
	"open with":    withMode(func(path string, mode uint32) error { return closed(unix.Open(path, unix.O_CREAT|unix.O_WRONLY, mode)) }),
	"openat2 with": withMode(func(path string, mode uint32) error {
		return closed(unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: uint64(mode)}))
	}),
	"tmpfile with": withMode(func(path string, mode uint32) error {
		return closed(unix.Open(path, unix.O_TMPFILE|unix.O_WRONLY, mode))
	}),
	"mknod with":   withMode(func(path string, mode uint32) error { return unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFREG|mode, 0) }),
	"creat with":   withMode(func(path string, mode uint32) error { return oldCall(85, path, uintptr(mode), 0) }),
	"old chmod to": withMode(func(path string, mode uint32) error { return oldCall(90, path, uintptr(mode), 0) }),
	"old open with": withMode(func(path string, mode uint32) error {
		return oldCall(2, path, unix.O_CREAT|unix.O_WRONLY, uintptr(mode))
	}),
	"old mknod with": withMode(func(path string, mode uint32) error { return oldCall(133, path, uintptr(unix.S_IFREG|mode), 0) }),
	"setcap": func(a []string) error {
		const cap = "\x01\x00\x00\x02\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" // CAP_SETUID
		return unix.Setxattr(a[0], "security.capability", []byte(cap), 0)
	},
	// Owners, times and extended attributes.
	"lchown":    func(a []string) error { return unix.Lchown(a[0], os.Getuid(), os.Getgid()) },
	"fchown":    onFile(func(fd int, _ []string) error { return unix.Fchown(fd, os.Getuid(), os.Getgid()) }),
	"old chown": func(a []string) error { return oldCall(92, a[0], uintptr(os.Getuid()), uintptr(os.Getgid())) },
	"futimens": onFile(func(fd int, _ []string) error {
		times := [2]unix.Timespec{{Sec: 1}, {Sec: 1}}
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
		return asError(errno)
	}),
	"utime":  func(a []string) error { return oldCall(132, a[0], 0, 0) },
	"utimes": func(a []string) error { return oldCall(235, a[0], 0, 0) },
	"futimesat": func(a []string) error {
		if runtime.GOARCH != "amd64" {
			return errors.New("no such call on " + runtime.GOARCH)
		}
		return callPath(261, a[0], 0, 0)
	},
	"lsetxattr":     func(a []string) error { return unix.Lsetxattr(a[0], "user.x", []byte("x"), 0) },
	"fsetxattr":     onFile(func(fd int, _ []string) error { return unix.Fsetxattr(fd, "user.x", []byte("x"), 0) }),
	"setxattrat":    func(a []string) error { return attributeAt(unix.SYS_SETXATTRAT, a[0]) },
	"removexattr":   func(a []string) error { return unix.Removexattr(a[0], "user.none") },
	"lremovexattr":  func(a []string) error { return unix.Lremovexattr(a[0], "user.none") },
	"fremovexattr":  onFile(func(fd int, _ []string) error { return unix.Fremovexattr(fd, "user.none") }),
	"removexattrat": func(a []string) error { return attributeAt(unix.SYS_REMOVEXATTRAT, a[0]) },
	"acl": func(a []string) error {
		// One that has the file's owner, its group and the others, and says what the mode says.
		const list = "\x02\x00\x00\x00" +
			"\x01\x00\x06\x00\xff\xff\xff\xff\x04\x00\x04\x00\xff\xff\xff\xff\x20\x00\x04\x00\xff\xff\xff\xff"
		return unix.Setxattr(a[0], "system.posix_acl_access", []byte(list), 0)
	},
	// The attributes of a file besides its mode.
	"getflags": onFile(func(fd int, _ []string) error {
		_, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		return err
	}),
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
			_, _, errno := unix.Syscall6(nr, at, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&attr)), 24, 0, 0)
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
	// Devices.
	"read terminal": func(a []string) error {
		return closed(unix.Open(a[0], unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0))
	},
	"list": func(a []string) error { _, err := os.ReadDir(a[0]); return err },
	"ioctl": func(a []string) error {
		request, err := strconv.ParseUint(a[0], 0, 64)
		if err != nil {
			return err
		}
		return raw(unix.SYS_IOCTL, 0, uintptr(request), uintptr(unsafe.Pointer(&[8]byte{})))
	},
	// Other processes: the argument is one, or 0.
	"prlimit": func(a []string) error {
		var limit unix.Rlimit
		if err := unix.Prlimit(pid(a), unix.RLIMIT_CORE, nil, &limit); err != nil {
			return err
		}
		return unix.Prlimit(pid(a), unix.RLIMIT_CORE, &limit, nil)
	},
	"sched_setaffinity": func(a []string) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(pid(a), &set)
	},
	"sched_setscheduler": func(a []string) error {
		return raw(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid(a)), unix.SCHED_NORMAL, uintptr(unsafe.Pointer(new(int32))))
	},
	"sched_setparam": func(a []string) error {
		return raw(unix.SYS_SCHED_SETPARAM, uintptr(pid(a)), uintptr(unsafe.Pointer(new(int32))), 0)
	},
	"sched_setattr": func(a []string) error {
		return unix.SchedSetAttr(pid(a), &unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: 19}, 0)
	},
	// Memory and queues of others, by what names them.
	"shmat": func(a []string) error {
		b, err := unix.SysvShmAttach(pid(a), 0, unix.SHM_RDONLY)
		if err == nil {
			err = unix.SysvShmDetach(b)
		}
		return err
	},
	"mq_open": func(a []string) error { return closed(openQueue(a[0], unix.O_RDONLY)) },
	// Namespaces.
}

// at is AT_FDCWD as an argument.
const at = ^uintptr(99)

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

// withMode is a probe with a path and a mode.
func withMode(f func(path string, mode uint32) error) func(args []string) error {
	return func(a []string) error { return f(a[0], mode(a)) }
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

// callPath is a call on a path below a folder.
func callPath(nr uintptr, path string, b, c uintptr) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(nr, at, uintptr(unsafe.Pointer(p)), b, c, 0, 0)
	return asError(errno)
}

// attributeAt sets or removes an extended attribute of a path.
func attributeAt(nr uintptr, path string) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	name := []byte("user.x\x00")
	if nr == unix.SYS_REMOVEXATTRAT {
		_, _, errno := unix.Syscall6(nr, at, uintptr(unsafe.Pointer(p)), 0, uintptr(unsafe.Pointer(&name[0])), 0, 0)
		return asError(errno)
	}
	value := []byte("x")
	args := struct {
		value       uint64
		size, flags uint32
	}{uint64(uintptr(unsafe.Pointer(&value[0]))), 1, 0}
	_, _, errno := unix.Syscall6(nr, at, uintptr(unsafe.Pointer(p)), 0, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
	runtime.KeepAlive(value)
	return asError(errno)
}

func asError(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// oldCall is a call by its number on amd64; other architectures do not have it.
func oldCall(nr uintptr, path string, b, c uintptr) error {
	if runtime.GOARCH != "amd64" {
		return errors.New("no such call on " + runtime.GOARCH)
	}
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	return raw(nr, uintptr(unsafe.Pointer(p)), b, c)
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
