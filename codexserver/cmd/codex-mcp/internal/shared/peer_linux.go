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
	stat, err := statOf(pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(stat[1]))
}

// statOf returns what the kernel tells about a process, after its id and its name: its state, its
// parent and more.
func statOf(pid int) ([][]byte, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	// The name in brackets may have any character.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return nil, fmt.Errorf("/proc/%d/stat: too short", pid)
	}
	return fields, nil
}

// at returns a way to a file of the folder that does not depend on the folder's name, and is
// short enough for a socket.
func (f *Folder) at(file string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", f.dir.Fd(), file) }

// identity returns a text that no other process has, before or after: the process id, and when
// the process and the system began.
func identity(pid int) (string, error) {
	stat, err := statOf(pid)
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	const began = 22 - 3 // of proc_pid_stat(5), without the first two fields
	if len(stat) <= began {
		return "", fmt.Errorf("/proc/%d/stat: too short", pid)
	}
	return fmt.Sprintf("%d %s %s", pid, stat[began], bytes.TrimSpace(boot)), nil
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

// Adopt makes this process the parent of orphans among its descendants, so that a command
// of the server remains a descendant whatever it does.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	return nil
}

// Namespaces identifies the kernel's namespaces of this process, and its sandbox. Processes in
// different ones do not see the same files and processes, so they cannot share a server.
func Namespaces() (string, error) {
	own, err := confinement(os.Getpid())
	if err != nil {
		return "", err
	}
	var all strings.Builder
	all.WriteString(own)
	for _, kind := range []string{"mnt", "pid", "net", "user"} {
		ns, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return "", errors.New("the namespaces of this process are unknown")
		}
		all.WriteString(ns)
	}
	return all.String(), nil
}
