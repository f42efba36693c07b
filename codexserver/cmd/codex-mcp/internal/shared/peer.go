package shared

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

var errUnsupported = errors.New("this system does not tell which program connects, so no process serves another; one " +
	"with --approvals page prints its link to standard error")

// maxAncestors bounds the walk to the first process.
const maxAncestors = 1 << 12

// companion returns the process at the other end of a connection. It fails unless that is one of
// this user, in no sandbox that this process is not in.
func companion(c *net.UnixConn) (pid int, err error) {
	user, pid, err := peer(c)
	if err != nil {
		return 0, err
	}
	if user != os.Getuid() {
		return 0, fmt.Errorf("user %d is not the server's", user)
	}
	its, err := confinement(pid)
	if err != nil {
		return 0, fmt.Errorf("the sandbox of process %d is unknown: %w", pid, err)
	}
	own, err := confinement(os.Getpid())
	if err == nil && its != own {
		err = fmt.Errorf("process %d is in another sandbox than this process", pid)
	}
	return pid, err
}

// admit returns an error unless the client of a connection is a [companion] that this process has
// not started, directly or by others. A command that the model runs could otherwise answer its own
// questions.
func admit(c *net.UnixConn) (pid int, err error) {
	lives, done := alive(c)
	defer done()
	if pid, err = companion(c); err != nil {
		return 0, err
	}
	for p, n := pid, 0; p > 1; n++ {
		if p == os.Getpid() || n == maxAncestors {
			return 0, fmt.Errorf("process %d is a command of the server", pid)
		}
		if p, _, err = look(p); err != nil {
			return 0, fmt.Errorf("the ancestors of process %d are unknown: %w", pid, err)
		}
	}
	if pid <= 0 || !lives() {
		return 0, errors.New("the process that connected has ended, or is in another namespace")
	}
	return pid, nil
}

// claim makes the folder name this process as the server of a name.
func (f *Folder) claim(name string) error {
	_, own, err := look(os.Getpid())
	if err != nil {
		return err
	}
	return safefile.Write(f.identity(name), []byte(own), 0o600)
}

// prove returns an error unless the server of a name is at the other end of a connection. A
// command in a sandbox may listen where it can write. It cannot write the file that names the
// server, and it cannot leave its sandbox, from which this process did not come.
func (f *Folder) prove(c *Conn, name string) (err error) {
	if c.pid, err = companion(c.UnixConn); err != nil {
		return err
	}
	_, is, err := look(c.pid)
	if err != nil {
		return err
	}
	named, err := safefile.Read(f.identity(name), 1<<10)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if string(named) != is {
		return errors.New("the process that listens on the socket is not the one that its folder names")
	}
	return nil
}
