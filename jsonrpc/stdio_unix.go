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
	stdout := os.Stdout
	os.Stdout = os.Stderr
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

func dupCloseOnExec(fd int) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	n, err := syscall.Dup(fd)
	if err == nil {
		syscall.CloseOnExec(n)
	}
	return n, err
}
