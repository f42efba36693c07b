package box_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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

// probe returns "ok", or the name of the error number.
func probe(words []string) string {
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "@parent", strconv.Itoa(os.Getppid()))
	}
	err := attempted(words)
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// attempted makes an attempt. After "threads" and a process it is made for each thread of it, for which its words have TID. It
// succeeds as soon as one does, and otherwise returns the error of a thread that had not ended.
func attempted(words []string) error {
	if words[0] != "threads" {
		return probes[words[0]](words[1:])
	}
	tasks, _ := os.ReadDir("/proc/" + words[1] + "/task") // what cannot be read has no threads
	last := errors.New("no threads")
	for _, task := range tasks {
		one := slices.Clone(words[2:])
		for i, word := range one {
			one[i] = strings.ReplaceAll(word, "TID", task.Name())
		}
		switch err := attempted(one); {
		case err == nil:
			return nil
		case !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENOENT):
			last = err
		}
	}
	return last
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
			said <- probe(one.Probe)
		}()
		fmt.Println(<-said)
	}
}

// probes are what a command may try, in a working folder next to a folder ../outside. See fixture.
var probes = map[string]func(args []string) error{
	// Files.
	"write":    func(a []string) error { return os.WriteFile(a[0], []byte("x"), 0o666) },
	"read":     func(a []string) error { _, err := os.ReadFile(a[0]); return err },
	"list":     func(a []string) error { _, err := os.ReadDir(a[0]); return err },
	"truncate": func(a []string) error { return os.Truncate(a[0], 0) },
	"mkdir":    func(a []string) error { return os.Mkdir(a[0], 0o777) },
	"remove":   func(a []string) error { return os.Remove(a[0]) },
	"rename":   func(a []string) error { return os.Rename(a[0], a[1]) },
	"link":     func(a []string) error { return os.Link(a[0], a[1]) },
	"symlink":  func(a []string) error { return os.Symlink(a[0], a[1]) },
	"bind":     func(a []string) error { return listen("unix", a[0]) },
	// What belongs to files.
	"chown": func(a []string) error { return os.Chown(a[0], os.Getuid(), os.Getgid()) },
	"times": func(a []string) error { return os.Chtimes(a[0], time.Unix(1, 0), time.Unix(1, 0)) },

	"dial": func(a []string) error { return dial(a[0], a[1]) },
	"run":  func(a []string) error { return exec.Command(a[0], a[1:]...).Run() },
	// The process itself.
	"setuid": func(a []string) error { // a program that belongs to root and says so
		out, err := exec.Command(a[0], probeWord, "uid").Output()
		return differs(err, string(out), strconv.Itoa(os.Getuid()))
	},
	"verdicts": verdictsProbe,
	"uid":      func([]string) error { fmt.Print(os.Geteuid()); syscall.Exit(0); return nil },
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
	// One system call, and one that must return a number.
	"call":    func(a []string) error { _, err := call(a); return err },
	"returns": func(a []string) error { n, err := call(a[1:]); return differs(err, n, uintptr(numbers(a[:1])[0])) },
	// Threads of other processes.
	"memory": openMemory,
	"owner": func(a []string) error { // the thread receives SIGUSR2 for input on a socket; the test looks whether that has arrived
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		for _, set := range [][]string{{"8", a[0]}, {"10", "12"}, {"4", "0x2000"}} { // F_SETOWN, F_SETSIG to SIGUSR2, F_SETFL to O_ASYNC
			_, _ = call(append([]string{"fcntl", strconv.Itoa(pair[0])}, set...))
		}
		_, err = unix.Write(pair[1], []byte("x"))
		return errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]), unix.EPERM)
	},
}

func differs[T comparable](err error, got, want T) error {
	if err == nil && got != want {
		err = fmt.Errorf("%v instead of %v", got, want)
	}
	return err
}

// openMemory opens a file that holds a thread's memory. Some kernels open it for a thread
// that has ended, and it is empty then.
func openMemory(a []string) error {
	f, err := os.Open(a[0])
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
		return unix.ESRCH
	}
	return nil // other read errors are fine: nothing has to be mapped at the beginning
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

func TestMain(m *testing.M) {
	box.Main()
	if len(os.Args) > 1 && os.Args[1] == probeWord {
		maps.Copy(probes, hostProbes)
		if os.Args[2] == eachProbe {
			probeEach(os.Args[3])
		} else {
			fmt.Print(probe(os.Args[2:]))
		}
		syscall.Exit(0) // os.Exit takes a second under the race detector
	}
	if inShm := strings.HasPrefix(os.Getenv("TMPDIR")+"/", "/dev/shm/"); inShm || os.Getenv("TMPDIR") == "" {
		os.Setenv("TMPDIR", "/tmp") // in /dev/shm a command has no shared memory of its own
	}
	os.Exit(memdir.Run(m))
}

// calls are system calls by name, which the probe "call" makes. Those that are old are amd64's alone.
var calls = map[string]uintptr{
	"accept": unix.SYS_ACCEPT, "add_key": unix.SYS_ADD_KEY, "bind": unix.SYS_BIND, "bpf": unix.SYS_BPF, "clone": unix.SYS_CLONE,
	"clone3": unix.SYS_CLONE3, "connect": unix.SYS_CONNECT, "fchmod": unix.SYS_FCHMOD, "fchmodat": unix.SYS_FCHMODAT, "fchmodat2": unix.SYS_FCHMODAT2,
	"fchown": unix.SYS_FCHOWN, "fcntl": unix.SYS_FCNTL, "file_setattr": unix.SYS_FILE_SETATTR, "fremovexattr": unix.SYS_FREMOVEXATTR,
	"fsetxattr": unix.SYS_FSETXATTR, "fsopen": unix.SYS_FSOPEN, "io_uring_setup": unix.SYS_IO_URING_SETUP, "ioctl": unix.SYS_IOCTL,
	"ioprio_set": unix.SYS_IOPRIO_SET, "kcmp": unix.SYS_KCMP, "keyctl": unix.SYS_KEYCTL, "kill": unix.SYS_KILL, "listen": unix.SYS_LISTEN,
	"lremovexattr": unix.SYS_LREMOVEXATTR, "lsetxattr": unix.SYS_LSETXATTR, "mknodat": unix.SYS_MKNODAT, "mount": unix.SYS_MOUNT,
	"mq_open": unix.SYS_MQ_OPEN, "mq_unlink": unix.SYS_MQ_UNLINK, "msgctl": unix.SYS_MSGCTL, "msgget": unix.SYS_MSGGET,
	"open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT, "open_tree": unix.SYS_OPEN_TREE, "openat": unix.SYS_OPENAT, "openat2": unix.SYS_OPENAT2,
	"perf_event_open": unix.SYS_PERF_EVENT_OPEN, "pidfd_getfd": unix.SYS_PIDFD_GETFD, "pidfd_send_signal": unix.SYS_PIDFD_SEND_SIGNAL,
	"pivot_root": unix.SYS_PIVOT_ROOT, "prctl": unix.SYS_PRCTL, "prlimit64": unix.SYS_PRLIMIT64, "process_vm_readv": unix.SYS_PROCESS_VM_READV, "ptrace": unix.SYS_PTRACE,
	"readlinkat": unix.SYS_READLINKAT, "removexattr": unix.SYS_REMOVEXATTR, "removexattrat": unix.SYS_REMOVEXATTRAT, "renameat2": unix.SYS_RENAMEAT2,
	"rt_sigqueueinfo": unix.SYS_RT_SIGQUEUEINFO, "sched_setaffinity": unix.SYS_SCHED_SETAFFINITY, "sched_setattr": unix.SYS_SCHED_SETATTR,
	"sched_setparam": unix.SYS_SCHED_SETPARAM, "sched_setscheduler": unix.SYS_SCHED_SETSCHEDULER, "semctl": unix.SYS_SEMCTL, "semget": unix.SYS_SEMGET,
	"sendto": unix.SYS_SENDTO, "setns": unix.SYS_SETNS, "sethostname": unix.SYS_SETHOSTNAME, "setpriority": unix.SYS_SETPRIORITY,
	"setsockopt": unix.SYS_SETSOCKOPT, "setxattr": unix.SYS_SETXATTR, "setxattrat": unix.SYS_SETXATTRAT, "shmat": unix.SYS_SHMAT,
	"shmctl": unix.SYS_SHMCTL, "shmget": unix.SYS_SHMGET, "socket": unix.SYS_SOCKET, "socketpair": unix.SYS_SOCKETPAIR, "tgkill": unix.SYS_TGKILL,
	"truncate": unix.SYS_TRUNCATE, "umount2": unix.SYS_UMOUNT2, "unshare": unix.SYS_UNSHARE, "userfaultfd": unix.SYS_USERFAULTFD,
	"utimensat": unix.SYS_UTIMENSAT, "x32": 0x40000000 + 39,

	"old open": 2, "old creat": 85, "old chmod": 90, "old chown": 92, "old lchown": 94, "old utime": 132, "old mknod": 133, "old utimes": 235,
	"old futimesat": 261,
}

// call makes one system call. An argument is a number, the address of some ("words:1,2") or of a text ("text:x"), a socket of TCP
// ("socket:FLAGS"), the descriptor of a file that is open for reading ("file:x") or of a process or thread ("process:1,FLAGS"), or the
// link in /proc of one that only names a file, perhaps with a name there ("link:x", "link:x//name"), through which an attacker
// opens it again.
func call(a []string) (result uintptr, err error) {
	nr, ok := calls[a[0]]
	if !ok || strings.HasPrefix(a[0], "old ") && runtime.GOARCH != "amd64" {
		return 0, fmt.Errorf("no call is called %s", a[0])
	}
	var n [6]uintptr
	var alive [6]any
	for i, argument := range a[1:] {
		kind, value, _ := strings.Cut(argument, ":")
		fd := -1
		switch kind {
		case "words":
			words := numbers(strings.Split(value, ","))
			alive[i], n[i] = words, uintptr(unsafe.Pointer(&words[0]))
			continue
		case "text":
		case "link":
			of, name, below := strings.Cut(value, "//")
			fd, err = unix.Open(of, unix.O_PATH|unix.O_CLOEXEC, 0)
			if value = fmt.Sprint("/proc/self/fd/", fd); below {
				value += "/" + name
			}
		case "socket":
			fd, err = given(int(numbers([]string{value})[0]))
		case "file":
			fd, err = unix.Open(value, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		case "process":
			of := numbers(strings.Split(value+",0", ","))
			fd, err = unix.PidfdOpen(int(of[0]), int(of[1]))
		default:
			n[i] = uintptr(numbers([]string{argument})[0])
			continue
		}
		if err != nil {
			return 0, err
		}
		if n[i] = uintptr(fd); kind == "text" || kind == "link" {
			text := append([]byte(value), 0)
			alive[i], n[i] = text, uintptr(unsafe.Pointer(&text[0]))
		}
		defer unix.Close(fd) // or fails
	}
	result, _, errno := unix.Syscall6(nr, n[0], n[1], n[2], n[3], n[4], n[5])
	runtime.KeepAlive(alive)
	if errno != 0 {
		err = errno
	}
	return result, err
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
