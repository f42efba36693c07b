package safefile

import "syscall"

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
