package jsonrpc

import (
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// polled returns f for use through the runtime's poller, so that Close
// unblocks it and no thread waits in the kernel for it.
//
// A pipe is opened anew, for setting it to non-blocking mode would do so for
// every process that shares it. A socket cannot be; but the end of a socket
// pair that a child inherits is the child's alone.
func polled(f *os.File, flag int) (io.ReadWriteCloser, bool) {
	fi, err := f.Stat()
	if err != nil {
		return nil, false
	}
	switch fi.Mode() & os.ModeType {
	case os.ModeNamedPipe:
		path := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
		p, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0)
		return p, err == nil
	case os.ModeSocket:
		c, err := net.FileConn(f)
		return c, err == nil
	}
	return nil, false
}

// promptBytes is how much a pipe takes at once when it is ready at all
// (PIPE_BUF); sockets have more room than that.
const promptBytes = 4096

// readiness asks the kernel whether a write would block.
type readiness struct {
	conn syscall.RawConn
	ask  func(fd uintptr) // bound once, to save an allocation per write
	yes  bool
}

// newReadiness returns nil if w is nothing that can be asked.
func newReadiness(w io.Writer) *readiness {
	f, ok := w.(syscall.Conn)
	if !ok {
		return nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	r := &readiness{conn: conn}
	r.ask = r.poll
	return r
}

// writable reports whether n bytes can be written without waiting. Only one
// goroutine may ask at a time.
func (r *readiness) writable(n int) bool {
	if r == nil || n > promptBytes {
		return false
	}
	r.yes = false
	return r.conn.Control(r.ask) == nil && r.yes
}

const pollOut = 4

func (r *readiness) poll(fd uintptr) {
	p := struct {
		fd              int32
		events, revents int16
	}{int32(fd), pollOut, 0}
	var now syscall.Timespec
	n, _, _ := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	r.yes = n == 1 && p.revents == pollOut
}
