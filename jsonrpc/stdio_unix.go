//go:build unix

package jsonrpc

import (
	"os"
	"syscall"
)

// claimStdout returns a file for the standard output that no other code can write to: a
// duplicate of descriptor 1, which then becomes descriptor 2. If duplicating fails, only
// os.Stdout is redirected.
func claimStdout() *os.File {
	// For this process, which prints through os.Stdout.
	stdout := os.Stdout
	os.Stdout = os.Stderr
	// For child processes and C libraries, which use descriptor 1.
	fd, err := dupCloseOnExec(1)
	if err != nil {
		return stdout
	}
	if err := dupOnto(2, 1); err != nil {
		_ = syscall.Close(fd)
		return stdout
	}
	return os.NewFile(uintptr(fd), "stdout")
}

// dupCloseOnExec duplicates a descriptor for this process alone. The lock keeps a child from being
// started between the two system calls: it would inherit the duplicate, and hold the other side's
// input open after our end.
func dupCloseOnExec(fd int) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	n, err := syscall.Dup(fd)
	if err == nil {
		syscall.CloseOnExec(n)
	}
	return n, err
}
