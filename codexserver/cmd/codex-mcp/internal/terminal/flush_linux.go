package terminal

import "golang.org/x/sys/unix"

// flush discards typed keys that were not read.
func flush(fd uintptr) error { return unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) }
