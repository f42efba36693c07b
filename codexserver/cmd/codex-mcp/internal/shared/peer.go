package shared

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// control calls f with the file descriptor of a connection.
func control(c *net.UnixConn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return errors.Join(err, failed)
}

// maxAncestors bounds the walk to the first process.
const maxAncestors = 1 << 12

// admit returns an error unless the process at the other end of a connection is one of
// this user that the server has not started, directly or by others, and in no sandbox that the
// server is not in. A command that the model runs could otherwise answer its own questions.
func admit(c *net.UnixConn) error {
	user, pid, err := peer(c)
	if err != nil {
		return err
	}
	if user != os.Getuid() {
		return fmt.Errorf("user %d is not the server's", user)
	}
	lives, done := alive(c)
	defer done()
	its, err := confinement(pid)
	if err != nil {
		return fmt.Errorf("the sandbox of process %d is unknown: %w", pid, err)
	}
	own, err := confinement(os.Getpid())
	if err != nil {
		return err
	}
	if its != own { // its clients make sure of the same
		return fmt.Errorf("process %d is in another sandbox than the server", pid)
	}
	for p, n := pid, 0; p > 1; n++ {
		if p == os.Getpid() || n == maxAncestors {
			return fmt.Errorf("process %d is a command of the server", pid)
		}
		if p, err = parent(p); err != nil {
			return fmt.Errorf("the ancestors of process %d are unknown: %w", pid, err)
		}
	}
	if pid <= 0 || !lives() {
		return errors.New("the process that connected has ended, or is in another namespace")
	}
	return nil
}
