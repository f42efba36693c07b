package shared

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const supported = true

// peer returns the user and the process at the other end of a connection.
func peer(c *net.UnixConn) (user, pid int, err error) {
	err = control(c, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			user, pid = int(cred.Uid), int(cred.Pid)
		}
		return err
	})
	return user, pid, err
}

// alive returns a function that reports whether the peer of a connection still lives, so
// that its id belongs to no other process. Linux before 6.5 cannot tell.
func alive(c *net.UnixConn) (check func() bool, done func()) {
	fd := -1
	_ = control(c, func(socket int) (err error) {
		fd, err = unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		return err
	})
	if fd < 0 {
		return func() bool { return true }, func() {}
	}
	return func() bool {
		ended := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ended, 0)
		return err == nil && n == 0
	}, func() { _ = unix.Close(fd) }
}

// parent returns the parent of a process.
func parent(pid int) (int, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// The name in brackets may have any character.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/stat: too short", pid)
	}
	return strconv.Atoi(string(fields[1]))
}

// Adopt makes this process the parent of orphans among its descendants, so that a command
// of the server remains a descendant whatever it does.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	return nil
}

// Namespaces identifies the kernel's namespaces of this process. Processes in different
// ones do not see the same files and processes, so they cannot share a server.
func Namespaces() (string, error) {
	var all strings.Builder
	for _, kind := range []string{"mnt", "pid", "net", "user"} {
		ns, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return "", errors.New("the namespaces of this process are unknown")
		}
		all.WriteString(ns)
	}
	return all.String(), nil
}
