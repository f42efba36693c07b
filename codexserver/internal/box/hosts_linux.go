//go:build amd64 || arm64

package box

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listening are the flags of a filter with a listener. Without the second one, which Linux has since 5.19, a signal
// would begin a call anew that the launcher answers, and a timer could do so for ever.
const listening = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// lacksHosts tries such a filter, on a thread that ends. There is only one listener in a chain of filters, so a
// program that runs under another one has none, such as a server that a command has started.
func lacksHosts() error {
	if RoomsAvailable() == nil {
		return nil
	}
	err := onOwnThread(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		listener, err := installFilter(bpf{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}, listening)
		if err == nil {
			err = unix.Close(listener)
		}
		return err
	})
	if err != nil {
		err = unavailable("the network by the host needs Linux 5.19, and nothing else that answers for the system "+
			"calls of this process, "+
			"such as a sandbox or a container in which it was started: %v", err)
	}
	return err
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
	// A local socket has no options of TCP, without which some clients give up.
	do(failing(0), all{{1, isNot, unix.SOL_SOCKET}}, unix.SYS_SETSOCKOPT)
}

// maxSockets is how many sockets of a command are served at a time. Each is a descriptor of the server.
const maxSockets = 64

// Hosts is a [Confinement] for one command that finds the proxy of this server in its network. Without rooms it has none, and
// its sockets of TCP all lead to this server: what the command gets is one end of a local pair, and what it connects it to
// is not looked at but for telling it that nothing else than the proxy is there.
type Hosts struct {
	*Confinement
	// Serve serves one socket, in a goroutine of its own, until it returns or the socket is closed. What it reads is the
	// command's: descriptors that come with it are dropped.
	Serve func(socket net.Conn)

	ctx    context.Context // until Close
	cancel context.CancelFunc
	ours   *net.UnixConn // by which the launcher's sockets come
	theirs *os.File
	done   sync.WaitGroup
}

// Hosts returns the confinement for a command that has such a network, nil if it has none: without [Options.Hosts], in
// read-only, with network access, under a helper, and where the system lacks something.
func (c *Confinement) Hosts() *Hosts {
	if !c.hosts {
		return nil
	}
	h := &Hosts{Confinement: c}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Apply implements [run.Confinement]. From here on sockets are served, until Close.
func (h *Hosts) Apply(cmd *exec.Cmd) (words string, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	h.theirs = os.NewFile(uintptr(pair[1]), "sockets")
	if h.ours, err = connOf(pair[0]); err == nil {
		err = unix.SetsockoptTimeval(pair[1], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1})
	}
	if err != nil {
		return "", err
	}
	h.done.Go(h.accept)
	r := h.rules
	r.limits |= hosts
	words, err = r.apply(cmd)
	cmd.ExtraFiles = append(cmd.ExtraFiles, h.theirs)
	return words, err
}

// accept serves the sockets of the command: those that the launcher sends, or those of the listener that it sends.
func (h *Hosts) accept() {
	places := make(chan struct{}, maxSockets)
	serve := func(socket net.Conn) {
		places <- struct{}{} // what comes meanwhile waits
		h.done.Go(func() {
			defer func() { <-places }()
			defer socket.Close()
			defer context.AfterFunc(h.ctx, func() { _ = socket.Close() })()
			h.Serve(socket)
		})
	}
	rights := make([]byte, unix.CmsgSpace(4))
	for {
		_, n, _, _, err := h.ours.ReadMsgUnix(make([]byte, 1), rights)
		messages, _ := unix.ParseSocketControlMessage(rights[:n])
		if err != nil || len(messages) != 1 {
			return // the command has ended
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 1 {
			return
		}
		if listens, err := unix.GetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && listens != 0 {
			h.listen(fds[0], serve)
			return
		}
		if socket, err := connOf(fds[0]); err == nil {
			serve(socket)
		}
	}
}

// listen serves what a listener accepts, until Close.
func (h *Hosts) listen(fd int, serve func(net.Conn)) {
	f := os.NewFile(uintptr(fd), "listener")
	l, err := net.FileListener(f)
	_ = f.Close()
	if err != nil {
		return
	}
	defer context.AfterFunc(h.ctx, func() { _ = l.Close() })()
	for {
		socket, err := l.Accept()
		if err != nil {
			return
		}
		serve(socket)
	}
}

// connOf makes a connection of a descriptor, which it takes.
func connOf(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// Close closes the sockets of a command that has ended, and waits until all are served.
func (h *Hosts) Close() {
	h.cancel()
	if h.ours != nil {
		_ = h.ours.Close()
	}
	_ = h.theirs.Close()
	h.done.Wait()
}

// supervisor answers, in a launcher, for the sockets of its command. It waits for nothing but, for a second, the server to
// take a socket: whether a host may be reached is asked when the command asks the proxy for it.
type supervisor struct {
	listener int // of the filter
	server   int // which takes the other end of each socket
}

// proxyName is [proxyAddress] as calls have it, on a machine whose numbers are little endian.
var proxyName = [8]byte{unix.AF_INET, 0, proxyPort >> 8, proxyPort & 0xff, 127, 0, 0, 1}

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
	for {
		fds := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == nil && fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		var n notification
		if control(s.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, &n) != nil {
			continue // who called was killed
		}
		r := response{id: n.id}
		switch n.nr {
		case unix.SYS_SOCKET:
			if s.give(&n) {
				continue // it is the answer
			}
			r.errno = -int32(unix.EMFILE)
		default:
			r.errno, r.flags = s.address(&n)
		}
		_ = control(s.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, &r) // fails when who called was killed
	}
}

// give answers a call of socket with one end of a pair. The other end goes to the server. It fails when many wait
// there and none is taken.
func (s *supervisor) give(n *notification) bool {
	flags := int(n.args[1])
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|flags&unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(pair[0])
	err = unix.Sendmsg(s.server, []byte{0}, unix.UnixRights(pair[1]), nil, unix.MSG_NOSIGNAL)
	_ = unix.Close(pair[1])
	if err != nil {
		return false
	}
	a := addition{
		id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, src: uint32(pair[0]),
		newflags: uint32(flags & unix.SOCK_CLOEXEC),
	}
	return control(s.listener, unix.SECCOMP_IOCTL_NOTIF_ADDFD, &a) == nil
}

// kernel has the kernel answer a call as if nobody had asked.
const kernel = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE

// address answers a call of connect or bind. Nothing is done: sockets that are given are connected already. So a command
// that changes the address while this reads it gains nothing. One that cannot be read is taken for the proxy's. Only a local
// name is bound, by a local socket, of which the filter lets it bind each.
func (s *supervisor) address(n *notification) (errno int32, flags uint32) {
	var name [8]byte // the rest has no meaning
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.pid))
	if err == nil {
		defer mem.Close()
		err = control(s.listener, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id) // else it may be the memory of another
	}
	if err == nil {
		_, err = mem.ReadAt(name[:], int64(n.args[1]))
	}
	family := binary.NativeEndian.Uint16(name[:])
	switch {
	case n.nr == unix.SYS_BIND && family != unix.AF_INET && family != unix.AF_INET6:
		return 0, kernel
	case n.nr == unix.SYS_BIND || err == nil && name != proxyName:
		return -int32(unix.EPERM), 0
	}
	return 0, 0
}
