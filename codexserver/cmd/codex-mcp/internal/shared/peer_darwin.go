package shared

import (
	"net"

	"golang.org/x/sys/unix"
)

const supported = true

// peer returns the user and the process at the other end of a connection.
func peer(c *net.UnixConn) (user, pid int, err error) {
	err = control(c, func(fd int) error {
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

// parent returns the parent of a process.
func parent(pid int) (int, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, err
	}
	return int(info.Eproc.Ppid), nil
}

// Adopt does nothing: macOS gives every orphan to launchd.
func Adopt() error { return nil }

// Namespaces returns "": macOS has no namespaces.
func Namespaces() (string, error) { return "", nil }
