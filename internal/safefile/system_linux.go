package safefile

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const procMagic = 0x9fa0 // PROC_SUPER_MAGIC in linux/magic.h

// InProc reports whether an open file or folder is in Linux's /proc, by whatever path it was
// opened.
func InProc(f syscall.Conn) (inProc bool, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var stat syscall.Statfs_t
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = syscall.Fstatfs(int(fd), &stat) }); err != nil {
		return false, err
	}
	return stat.Type == procMagic, failed
}

// nameOf returns the path of an open file as it is now, "" if the system does not say it.
func nameOf(f *File) (path string) {
	conn, err := f.SyscallConn()
	if err == nil {
		_ = conn.Control(func(fd uintptr) { path, _ = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd))) })
	}
	return path
}

const (
	errNoRoom = unix.ENOSPC
	tellsRoom = true
)

// roomIn returns how many bytes this user may still write on the disk of a folder: none if no further
// file can be made.
func roomIn(dir string) (int64, error) {
	var s unix.Statfs_t
	for {
		err := unix.Statfs(dir, &s)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
		}
	}
	if s.Files > 0 && s.Ffree == 0 {
		return 0, nil
	}
	return int64(min(s.Bavail, allRoom/uint64(s.Bsize))) * int64(s.Bsize), nil
}
