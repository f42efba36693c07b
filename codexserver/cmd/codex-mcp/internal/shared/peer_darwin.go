package shared

import (
	"fmt"
	"net"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// peer returns the user and the process at the other end of a connection.
func peer(c *net.UnixConn) (user, pid int, err error) {
	err = descriptor(c, func(fd int) error {
		cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err != nil {
			return err
		}
		user = int(cred.Uid)
		pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		return err
	})
	return user, pid, err
}

// alive returns functions without effect: the system cannot tell whether a process has ended
// since it connected.
func alive(*net.UnixConn) (check func() bool, done func()) {
	return func() bool { return true }, func() {}
}

// at returns the path of a file of the folder: this system has no way to a socket by the folder's
// descriptor.
func (f *Folder) at(file string) string { return filepath.Join(f.path, file) }

// look returns the parent of a process, and a text that no other process has, before or after: the
// process id, and when the process began.
func look(pid int) (parent int, identity string, err error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, "", err
	}
	began := info.Proc.P_starttime
	return int(info.Eproc.Ppid), fmt.Sprintf("%d %d.%06d", pid, began.Sec, began.Usec), nil
}

// confinement returns "": the system does not tell which processes are in a sandbox.
func confinement(int) (string, error) { return "", nil }

// adopt does nothing: macOS gives every orphan to launchd.
func adopt() error { return nil }

// Namespaces returns "": macOS has no namespaces.
func Namespaces() (string, error) { return "", nil }
