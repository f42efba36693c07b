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
	if err := mask(&none, &before); err != nil {
		return fmt.Errorf("unblock signals: %w", err)
	}
	defer func() { _ = mask(&before, &none) }() // it was so before
	return start()
}

// mask replaces the mask of this thread.
func mask(to, before *uint32) error {
	_, _, errno := unix.RawSyscall(unix.SYS___PTHREAD_SIGMASK, setMask,
		uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(before)))
	if errno != 0 {
		return errno
	}
	return nil
}
