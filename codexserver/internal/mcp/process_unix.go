//go:build unix

package mcp

import (
	"errors"
	"os"
	"syscall"
)

// lives reports whether another process with that id runs.
func lives(process int) bool {
	return process > 0 && process != os.Getpid() && !errors.Is(syscall.Kill(process, 0), syscall.ESRCH)
}
