package jsonrpc

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// polled returns f, which is open for writing, for use through the runtime's poller, so that Close unblocks it.
//
// A pipe in blocking mode is opened again: setting the mode of f itself would do so for every process that
// shares it. A socket cannot be opened again; but the end of a socket pair that a child inherits is the child's.
func polled(f *os.File) (io.WriteCloser, bool) {
	fi, err := f.Stat()
	if err != nil {
		return nil, false
	}
	switch fi.Mode() & os.ModeType {
	case os.ModeNamedPipe:
		p, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return p, err == nil
	case os.ModeSocket:
		c, err := net.FileConn(f)
		return c, err == nil
	}
	return nil, false
}

// stoppable reads a file of any kind, and its Close unblocks a Read. It does not close the file.
//
// A thread waits in the kernel for input. Through the runtime's poller each wait would cost a read that finds
// nothing and a switch of goroutines, and one call after another between processes on one core a third more.
//
// The read of a pipe ends with a byte that Close writes into the pipe. Before each read of another file the kernel is asked
// for its input and for the end of stop: a second system call, with which one call after another takes up to an eighth more.
type stoppable struct {
	conn            syscall.RawConn
	closed, reading atomic.Bool
	// stop is closed by Close, which the kernel reports at the other end. That is left to the garbage
	// collector: a Read may be asking for it. Both are nil for a pipe.
	stop, stopped *os.File

	read func(fd uintptr) // bound once, to save an allocation per read
	fds  []pollFD
	b    []byte
	n    int
	err  error
}

// newStoppable returns false if f is closed.
func newStoppable(f *os.File) (io.ReadCloser, bool) {
	conn, err := f.SyscallConn()
	if err != nil || conn.Control(func(uintptr) {}) != nil {
		return nil, false
	}
	s := &stoppable{conn: conn, fds: make([]pollFD, 1, 2)}
	s.read = func(fd uintptr) { s.n, s.err = s.readFD(int(fd)) }
	if fi, err := f.Stat(); err == nil && fi.Mode()&os.ModeNamedPipe != 0 && s.write(nil) == nil {
		return s, true
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, false
	}
	s.stop, s.stopped = w, r
	s.fds = append(s.fds, pollFD{fd: int32(r.Fd()), events: pollIn})
	return s, true
}

// Read implements io.Reader. It returns os.ErrClosed after Close, also if there is input.
func (s *stoppable) Read(b []byte) (int, error) {
	s.b = b
	s.reading.Store(true) // before it looks at closed: Close looks in the other order
	defer s.reading.Store(false)
	if s.closed.Load() {
		return 0, os.ErrClosed
	}
	if err := s.conn.Control(s.read); err != nil { // during which the descriptor is not closed
		return 0, err
	}
	if s.closed.Load() {
		return 0, os.ErrClosed
	}
	return s.n, s.err
}

func (s *stoppable) readFD(fd int) (int, error) {
	for ask := s.stop != nil; ; ask = true {
		if ask {
			s.fds[0] = pollFD{fd: int32(fd), events: pollIn}
			_, _, errno := syscall.Syscall6(
				syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&s.fds[0])), uintptr(len(s.fds)), 0, 0, 0, 0)
			switch {
			case errno == syscall.EINTR:
				continue
			case errno != 0:
				return 0, os.NewSyscallError("ppoll", errno)
			case s.closed.Load():
				return 0, os.ErrClosed
			}
		}
		n, err := syscall.Read(fd, s.b)
		switch {
		// Nothing else reads the file; but a process that shares it may have set non-blocking mode.
		case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN):
			continue
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// Close implements io.Closer.
func (s *stoppable) Close() error {
	s.closed.Store(true)
	switch {
	case s.stop != nil:
		return s.stop.Close()
	case s.reading.Load():
		return s.write([]byte{'\n'}) // taken by the Read that waits, which nobody else does
	}
	return nil
}

// write writes b by the other end of a pipe, unless the pipe is full. It opens that end for this alone: the input ends when
// nobody has it.
func (s *stoppable) write(b []byte) (err error) {
	failed := s.conn.Control(func(fd uintptr) {
		var end int
		end, err = syscall.Open("/proc/self/fd/"+strconv.Itoa(int(fd)),
			syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err == nil {
			_, err = syscall.Write(end, b)
			err = errors.Join(err, syscall.Close(end))
		}
	})
	if errors.Is(err, syscall.EAGAIN) { // so that no Read waits
		err = nil
	}
	return errors.Join(failed, err)
}

// nonBlocking reports whether f is in non-blocking mode. In blocking mode no deadline interrupts
// a Read.
func nonBlocking(f *os.File) (yes bool) {
	c, err := f.SyscallConn()
	return err == nil && c.Control(func(fd uintptr) { yes = isNonBlocking(fd) }) == nil && yes
}

func isNonBlocking(fd uintptr) bool {
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0)
	return errno == 0 && flags&syscall.O_NONBLOCK != 0
}

// readiness writes to a descriptor if that does not block. Only one goroutine
// may use it at a time.
//
// A pipe in non-blocking mode is simply written to: up to PIPE_BUF bytes it takes as a whole or
// refuses. For anything else the kernel is asked first whether there is room. The answer stays
// true until the write, since no other goroutine writes.
type readiness struct {
	conn   syscall.RawConn
	atomic bool // a non-blocking pipe, which takes PIPE_BUF bytes as a whole or not at all

	// Bound once, to save an allocation per write.
	ask func(fd uintptr)
	try func(fd uintptr) bool
	yes bool   // ask: a write would not block
	b   []byte // try: what to write
	n   int
	err error
}

// newReadiness returns nil if w is not a descriptor.
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
	r.ask = func(fd uintptr) { r.yes = poll(fd) }
	r.try = func(fd uintptr) bool { r.n, r.err = syscall.Write(int(fd), r.b); return true }
	// Asked once. The mode does not change: nothing else has the descriptor.
	err = conn.Control(func(fd uintptr) { r.atomic = atomicPipe(fd) })
	if err != nil {
		return nil
	}
	return r
}

// atomicPipe reports whether fd is a pipe in non-blocking mode.
func atomicPipe(fd uintptr) bool {
	var st syscall.Stat_t
	if syscall.Fstat(int(fd), &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return false
	}
	return isNonBlocking(fd)
}

// write writes b, at most promptBytes, if there is room for it in an atomic
// pipe. It reports whether it has.
func (r *readiness) write(b []byte) (bool, error) {
	// try returns true in any case: false would let the runtime wait for room.
	r.b = b
	err := r.conn.Write(r.try)
	r.b = nil
	switch {
	case err != nil:
		return false, err
	// No room, or interrupted before a byte was written. The writer goroutine will write it.
	case errors.Is(r.err, syscall.EAGAIN), errors.Is(r.err, syscall.EINTR):
		return false, nil
	case r.err != nil:
		return false, os.NewSyscallError("write", r.err)
	case r.n < len(b):
		return false, io.ErrShortWrite
	}
	return true, nil
}

// writable reports whether promptBytes can be written without waiting.
func (r *readiness) writable() bool {
	r.yes = false
	return r.conn.Control(r.ask) == nil && r.yes
}

// pollFD is the kernel's struct pollfd.
type pollFD struct {
	fd              int32
	events, revents int16
}

const (
	pollIn  = 1 // POLLIN
	pollOut = 4 // POLLOUT
)

// poll asks the kernel without waiting. RawSyscall is allowed because it does not block; it
// saves the work of the scheduler around a system call.
func poll(fd uintptr) bool {
	p := pollFD{fd: int32(fd), events: pollOut}
	var now syscall.Timespec
	n, _, _ := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0,
		0, 0)
	return n == 1 && p.revents == pollOut
}
