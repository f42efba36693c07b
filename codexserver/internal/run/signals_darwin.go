package run

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setMask is SIG_SETMASK of sigprocmask(2).
const setMask = 3

// unblocked calls start while this thread blocks no signal.
func unblocked(start func() error) error {
	var none, before uint32
	_, _, errno := unix.RawSyscall(unix.SYS___PTHREAD_SIGMASK, setMask, uintptr(unsafe.Pointer(&none)), uintptr(unsafe.Pointer(&before)))
	if errno != 0 {
		return fmt.Errorf("unblock signals: %w", errno)
	}
	defer func() { // it was so before
		_, _, _ = unix.RawSyscall(unix.SYS___PTHREAD_SIGMASK, setMask, uintptr(unsafe.Pointer(&before)), 0)
	}()
	return start()
}
