package workers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// FenceName is the name of the process that runs [RunFence].
const FenceName = "codex-mcp-gateway-fence"

const (
	// fenceFD is the descriptor of the socket in the process of the fence.
	fenceFD = 3
	// fenceInterval is how often the fence looks at its clock.
	fenceInterval = 50 * time.Millisecond
	// fenceMessage is the length of a message: the number of a worker and its deadline.
	fenceMessage = 16
	// fenceTimeout bounds how long a message takes.
	fenceTimeout = 5 * time.Second
)

// fence is a process that kills workers whose deadline passes, also while the process of the
// pool is stopped.
type fence struct {
	cmd  *exec.Cmd
	conn *net.UnixConn

	mu   sync.Mutex
	last uint64
}

// startFence starts the process, which is this program.
func startFence(stderr io.Writer) (*fence, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "fence"), os.NewFile(uintptr(fds[1]), "fence")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	f := &fence{conn: conn.(*net.UnixConn)}
	f.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{FenceName}, Env: []string{}, Dir: "/", Stderr: stderr, ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // a terminal that stops the program does not stop it
	}
	if err := f.cmd.Start(); err != nil {
		return nil, errors.Join(err, f.conn.Close())
	}
	return f, nil
}

// add makes the fence kill a process, which nobody has waited for yet, after a deadline. It
// returns the number of the process for [fence.extend].
func (f *fence) add(pid int, deadline time.Duration) (uint64, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, fmt.Errorf("fence: %w", err)
	}
	defer unix.Close(fd)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	return f.last, f.send(f.last, deadline, unix.UnixRights(fd))
}

// extend changes the deadline of a process. 0 forgets it.
func (f *fence) extend(number uint64, deadline time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.send(number, deadline, nil)
}

func (f *fence) send(number uint64, deadline time.Duration, rights []byte) error {
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, number), uint64(deadline))
	if err := f.conn.SetWriteDeadline(time.Now().Add(fenceTimeout)); err != nil {
		return err
	}
	if _, _, err := f.conn.WriteMsgUnix(b, rights, nil); err != nil {
		return fmt.Errorf("the fence has ended: %w", err)
	}
	return nil
}

// close ends the fence, which kills the processes that are left.
func (f *fence) close() error {
	err := f.conn.Close()
	defer time.AfterFunc(fenceTimeout, f.kill).Stop()
	return errors.Join(err, f.cmd.Wait())
}

// kill kills the fence.
func (f *fence) kill() { _ = f.cmd.Process.Kill() } // fails if it has ended

// fenced is a process of the fence.
type fenced struct {
	fd       int // a descriptor of the process
	deadline time.Duration
}

// RunFence runs the fence, until the process of the pool ends. Then it kills the processes that
// are left.
func RunFence() error {
	processes := map[uint64]fenced{}
	kill := func(number uint64) {
		_ = unix.PidfdSendSignal(processes[number].fd, unix.SIGKILL, nil, 0) // fails if it has ended
		_ = unix.Close(processes[number].fd)
		delete(processes, number)
	}
	defer func() {
		for number := range processes {
			kill(number)
		}
	}()
	for {
		ready, err := unix.Poll([]unix.PollFd{{Fd: fenceFD, Events: unix.POLLIN}}, int(fenceInterval/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ready > 0 {
			number, deadline, fd, err := receiveFenced()
			if err != nil || number == 0 {
				return err
			}
			p, known := processes[number]
			if !known {
				p.fd = fd
			}
			p.deadline = deadline
			switch {
			case !known && fd < 0:
			case deadline == 0:
				_ = unix.Close(p.fd)
				delete(processes, number)
			default:
				processes[number] = p
			}
		}
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
			return err
		}
		for number, p := range processes {
			if time.Duration(now.Nano()) >= p.deadline {
				kill(number)
			}
		}
	}
}

// receiveFenced receives a message. number is 0 at the end. fd is -1 unless the message has a
// descriptor.
func receiveFenced() (number uint64, deadline time.Duration, fd int, err error) {
	b, rights := make([]byte, fenceMessage), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := unix.Recvmsg(fenceFD, b, rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return 0, 0, -1, err
	}
	if n != fenceMessage {
		return 0, 0, -1, fmt.Errorf("a message of %d bytes", n)
	}
	fd = -1
	if m > 0 {
		messages, err := unix.ParseSocketControlMessage(rights[:m])
		if err != nil || len(messages) != 1 {
			return 0, 0, -1, fmt.Errorf("a message without a descriptor: %w", err)
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 1 {
			return 0, 0, -1, fmt.Errorf("a message without a descriptor: %w", err)
		}
		fd = fds[0]
	}
	return binary.BigEndian.Uint64(b), time.Duration(binary.BigEndian.Uint64(b[8:])), fd, nil
}
