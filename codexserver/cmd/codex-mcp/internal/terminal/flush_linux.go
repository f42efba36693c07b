package terminal

import "golang.org/x/sys/unix"

// flush throws away what was typed and not read.
func flush(fd uintptr) error { return unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) }
