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

// peer returns the user and the process at the other end of a connection.
func peer(c *net.UnixConn) (user, pid int, err error) {
	err = descriptor(c, func(fd int) error {
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
	_ = descriptor(c, func(socket int) (err error) {
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

// at returns a way to a file of the folder that does not depend on the folder's name, and is
// short enough for a socket.
func (f *Folder) at(file string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", f.dir.Fd(), file) }

// look returns the parent of a process, and a text that no other process has, before or after: the
// process id, and when the process and the system began.
func look(pid int) (parent int, identity string, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0, "", err
	}
	// The fields of proc_pid_stat(5) after the name in brackets, which may have any character.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const above, began = 4 - 3, 22 - 3
	if len(fields) <= began {
		return 0, "", fmt.Errorf("/proc/%d/stat: too short", pid)
	}
	if parent, err = strconv.Atoi(string(fields[above])); err != nil {
		return 0, "", err
	}
	return parent, fmt.Sprintf("%d %s %s", pid, fields[began], bytes.TrimSpace(boot)), nil
}

// confinement identifies what a process can never leave: every sandbox takes the right to new
// privileges away, and most add filters.
func confinement(pid int) (string, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for line := range bytes.Lines(status) {
		for _, name := range []string{"NoNewPrivs:", "Seccomp:", "Seccomp_filters:"} {
			if bytes.HasPrefix(line, []byte(name)) {
				all.Write(line)
			}
		}
	}
	return all.String(), nil
}

// adopt makes this process the parent of orphans among its descendants, so that a command
// of the server remains a descendant whatever it does.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	return nil
}

// Namespaces identifies the kernel's namespaces of this process, and its sandbox. Processes in
// different ones do not see the same files and processes, so they cannot share a server.
func Namespaces() (string, error) {
	all, err := confinement(os.Getpid())
	if err != nil {
		return "", err
	}
	for _, kind := range []string{"mnt", "pid", "net", "user"} {
		ns, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return "", errors.New("the namespaces of this process are unknown")
		}
		all += ns
	}
	return all, nil
}
