package run

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// sockets serves the sockets of one command, which its launcher sends. The zero value serves none.
type sockets struct {
	from   *net.UnixConn
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// serve begins to serve, and returns the launcher's end of the connection by which the sockets come.
func (s *sockets) serve(f func(context.Context, net.Conn)) (theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs = os.NewFile(uintptr(pair[1]), "sockets")
	conn, err := connOf(pair[0])
	if err != nil {
		return nil, errors.Join(err, theirs.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.from, s.cancel = conn, cancel
	s.done.Go(func() {
		for {
			socket, err := s.receive()
			if err != nil {
				return // the launcher has ended, or the command
			}
			s.done.Go(func() {
				stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
				f(ctx, socket)
				stop()
				_ = socket.Close()
				_, _ = s.from.Write([]byte{0}) // fails when the launcher is gone
			})
		}
	})
	return theirs, nil
}

// receive waits for the next socket.
func (s *sockets) receive() (*net.UnixConn, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := s.from.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return nil, errors.Join(err, io.EOF)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil, errors.Join(err, io.EOF)
	}
	return connOf(fds[0])
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

// close ends all, and waits until everything has returned.
func (s *sockets) close() {
	if s.from == nil {
		return
	}
	s.cancel()
	_ = s.from.Close()
	s.done.Wait()
}
