//go:build amd64 || arm64

package box

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listening are the flags of a filter with a listener. Without the second one, which Linux has since 5.19, a signal
// would begin a call anew that the launcher answers, and a timer could do so for ever.
const listening = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// lacksHosts tries such a filter, on a thread that ends. There is only one listener in a chain of filters, so a
// program that runs under another one has none, such as a server that a command has started.
func lacksHosts() error {
	done := make(chan error, 1)
	onOwnThread(func() {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			done <- unavailable("no new privileges: %v", err)
			return
		}
		var all bpf
		all.end(unix.SECCOMP_RET_ALLOW)
		listener, err := installFilter(all, listening)
		switch {
		case err == nil:
			_ = unix.Close(listener)
		case errors.Is(err, unix.EINVAL):
			err = unavailable("the network by the host needs Linux 5.19")
		case errors.Is(err, unix.EBUSY):
			err = unavailable("something else answers for the system calls of this process, which then cannot: " +
				"it was started in a sandbox or a container that does so")
		default:
			err = unavailable("the network by the host: %v", err)
		}
		done <- err
	})
	return <-done
}

// withHosts returns the rules for a launcher that answers for sockets.
func (r rules) withHosts() rules {
	r.limits |= hosts
	return r
}

// askLauncher adds what the launcher answers. All else stays refused: other sockets of IP, and other connects.
func askLauncher(do func(action uint32, tests []test, numbers ...uint32)) {
	const notify = unix.SECCOMP_RET_USER_NOTIF
	type all = []test
	for _, protocol := range []uint32{0, unix.IPPROTO_TCP} {
		do(notify, all{
			{0, is, unix.AF_INET}, {1, has, unix.SOCK_STREAM},
			{1, hasNo, ^uint32(unix.SOCK_STREAM | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC)}, {2, is, protocol},
		}, unix.SYS_SOCKET)
	}
	do(notify, all{{2, is, unix.SizeofSockaddrInet4}}, unix.SYS_CONNECT)
	// A local socket takes no address of IP, but in words that nobody understands.
	do(notify, all{{2, is, unix.SizeofSockaddrInet4}}, unix.SYS_BIND)
	do(notify, all{{2, is, unix.SizeofSockaddrInet6}}, unix.SYS_BIND)
	// Some clients fail with a socket whose name is none of IP.
	do(notify, nil, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME)
	// A local socket has no options of TCP, without which some clients give up.
	do(failing(0), all{{1, isNot, unix.SOL_SOCKET}}, unix.SYS_SETSOCKOPT)
}

// maxSockets is how many sockets of a command may be open. Each is a descriptor of the server.
const maxSockets = 64

// closeTime is how long the launcher waits for the server to close one of them.
const closeTime = time.Second

// supervisor answers, in a launcher, for the sockets of its command. It waits for nothing but the server's other end:
// whether a host may be reached is asked when the command asks the proxy for it.
type supervisor struct {
	listener int             // of the filter
	to       *os.File        // the server, which takes the other end of each socket, and says with a byte that one was closed
	server   int             // its descriptor
	open     int             // sockets
	given    map[string]bool // the sockets of the command, as links in /proc name them
}

// The structures of seccomp_unotify(2).
type (
	notification struct {
		id     uint64
		pid, _ uint32
		nr     int32
		_      uint32
		_      uint64
		args   [6]uint64 // of which the kernel uses the lower halves
	}
	response struct {
		id    uint64
		_     int64
		errno int32
		flags uint32
	}
	addition struct {
		id                      uint64
		flags, src, _, newflags uint32
	}
)

func control[T any](fd int, request uintptr, arg *T) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
		return errno
	}
	return nil
}

// run answers until the last process with the filter has ended. It takes no signals: one that interrupts the addition of a
// descriptor, such as that of a child's end, would let the call of socket return 0, without a socket.
func (s *supervisor) run() {
	runtime.LockOSThread() // not unlocked, so that the thread ends
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i]--
	}
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil) // cannot fail
	defer unix.Close(s.listener)
	for {
		fds := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}}
		switch _, err := unix.Poll(fds, -1); {
		case err != nil: // EINTR
			continue
		case fds[0].Revents&unix.POLLIN == 0:
			return
		}
		var n notification
		if control(s.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, &n) != nil {
			continue // who called was killed
		}
		r := response{id: n.id}
		var err error
		switch n.nr {
		case unix.SYS_SOCKET:
			if err = s.give(&n); err == nil {
				continue // it is the answer
			}
		case unix.SYS_BIND: // only of local sockets, of which the filter lets it bind each
			if family, _, err := s.address(&n); err == nil && (family == unix.AF_INET || family == unix.AF_INET6) {
				r.errno = -int32(unix.EPERM)
			} else {
				r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
			}
		case unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME:
			if !s.name(&n) {
				r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
			}
		default:
			err = s.connect(&n)
		}
		var errno unix.Errno
		if errors.As(err, &errno) {
			r.errno = -int32(errno)
		} else if err != nil {
			r.errno = -int32(unix.EPERM)
		}
		_ = control(s.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, &r) // fails when who called was killed
	}
}

// give answers a call of socket with one end of a pair. The other end goes to the server.
func (s *supervisor) give(n *notification) error {
	if s.closed(); s.open >= maxSockets { // a command may close them faster than the server sees it
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.server), Events: unix.POLLIN}}, int(closeTime.Milliseconds()))
		if s.closed(); s.open >= maxSockets {
			return unix.EMFILE
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[0])
	err = unix.Sendmsg(s.server, []byte{0}, unix.UnixRights(pair[1]), nil, unix.MSG_NOSIGNAL)
	_ = unix.Close(pair[1])
	if err != nil { // the server is gone, and the command soon
		return unix.EPERM
	}
	s.open++
	s.gives(pair[0])
	if flags := uint32(n.args[1]); flags&unix.SOCK_NONBLOCK != 0 {
		if err := unix.SetNonblock(pair[0], true); err != nil {
			return err
		}
	}
	a := addition{
		id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, src: uint32(pair[0]), newflags: uint32(n.args[1]) & unix.SOCK_CLOEXEC,
	}
	return control(s.listener, unix.SECCOMP_IOCTL_NOTIF_ADDFD, &a)
}

// closed counts the sockets that were closed since the last time.
func (s *supervisor) closed() {
	for b := make([]byte, 1); s.open > 0; s.open-- {
		if got, _, err := unix.Recvfrom(s.server, b, unix.MSG_DONTWAIT); err != nil || got == 0 {
			return
		}
	}
}

// connect answers a call of connect, and does nothing else: its sockets are connected already. So a command that changes
// the address while this reads it gains nothing. An address that cannot be read is taken for the proxy's.
func (s *supervisor) connect(n *notification) error {
	family, address, err := s.address(n)
	switch {
	case errors.Is(err, unix.EFAULT):
		return err
	case err == nil && (family != unix.AF_INET || address != proxyAddress):
		return unix.EPERM
	}
	return nil
}

// address returns a copy of the address that a call of connect or bind names. Address is "" if it is none of IPv4.
func (s *supervisor) address(n *notification) (family int, address string, err error) {
	mem, err := s.memory(n, unix.O_RDONLY)
	if err != nil {
		return 0, "", err
	}
	defer unix.Close(mem)
	b := make([]byte, unix.SizeofSockaddrInet4)
	if got, err := unix.Pread(mem, b, int64(n.args[1])); err != nil || got < len(b) {
		return 0, "", unix.EFAULT
	}
	if family = int(binary.NativeEndian.Uint16(b)); family == unix.AF_INET {
		address = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:])).String()
	}
	return family, address, nil
}

// memory opens the memory of the process that waits for an answer. The descriptor stays with that memory, whoever has the
// id of the process later.
func (s *supervisor) memory(n *notification, flags int) (fd int, err error) {
	fd, err = unix.Open("/proc/"+strconv.Itoa(int(n.pid))+"/mem", flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := control(s.listener, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id); err != nil {
		_ = unix.Close(fd) // it may be another's
		return -1, err
	}
	return fd, nil
}

// gives records that the command gets a socket.
func (s *supervisor) gives(fd int) {
	const most = 1 << 16 // of older ones names are told as they are
	var about unix.Stat_t
	if unix.Fstat(fd, &about) != nil {
		return
	}
	if s.given == nil || len(s.given) == most {
		s.given = map[string]bool{}
	}
	s.given["socket:["+strconv.FormatUint(about.Ino, 10)+"]"] = true
}

// name answers a call of getsockname or getpeername about a socket that was given, as if it were one of TCP that is
// connected to the proxy. It writes what the kernel would, where the call wants it. It returns false for other sockets, and
// where it cannot: then the kernel answers.
func (s *supervisor) name(n *notification) bool {
	socket, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[0])))
	if err != nil || !s.given[socket] {
		return false
	}
	mem, err := s.memory(n, unix.O_RDWR)
	if err != nil {
		return false
	}
	defer unix.Close(mem)
	size := make([]byte, 4)
	if got, err := unix.Pread(mem, size, int64(n.args[2])); err != nil || got < len(size) {
		return false
	}
	room := int32(binary.NativeEndian.Uint32(size))
	if room < 0 {
		return false
	}
	port := uint16(proxyPort)
	if n.nr == unix.SYS_GETSOCKNAME {
		port++
	}
	name := binary.NativeEndian.AppendUint16(nil, unix.AF_INET)
	name = append(binary.BigEndian.AppendUint16(name, port), 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	if _, err := unix.Pwrite(mem, name[:min(int(room), len(name))], int64(n.args[1])); err != nil {
		return false
	}
	binary.NativeEndian.PutUint32(size, uint32(len(name)))
	_, err = unix.Pwrite(mem, size, int64(n.args[2]))
	return err == nil
}
