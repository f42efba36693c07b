//go:build unix

package mcp

import (
	"errors"
	"os"
	"syscall"
)

// lives reports whether another process with that id runs, which began then.
func lives(process int, start string) bool {
	return process > 0 && process != os.Getpid() && !errors.Is(syscall.Kill(process, 0), syscall.ESRCH) && startOf(process) == start
}
