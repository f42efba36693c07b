package run

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unblocked calls start while this thread blocks no signal.
func unblocked(start func() error) error {
	var before unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, new(unix.Sigset_t), &before); err != nil {
		return fmt.Errorf("unblock signals: %w", err)
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) }() // it was so before
	return start()
}

// The actions of a signal that need no handler.
const sigDefault, sigIgnore = 0, 1

// setAction sets the action of a signal without Go's knowledge.
func setAction(sig unix.Signal, handler uintptr) error {
	action := struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}{handler: handler}
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	if errno != 0 {
		return fmt.Errorf("set the action of %v: %w", sig, errno)
	}
	return nil
}
