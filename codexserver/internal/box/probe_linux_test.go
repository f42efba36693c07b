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
	for _, some := range []map[string]func([]string) error{probes, callProbes} {
		if f, ok := some[name]; ok {
			err = f(args)
		}
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

// dial connects and writes a byte.
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
