//go:build unix

package proc

import (
	"os"
	"syscall"
)

// sessionAttr makes the command the leader of a new session and process group without a
// terminal.
func sessionAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func exitCode(state *os.ProcessState) int {
	if state == nil {
		return -1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok {
		return codeOf(status)
	}
	return state.ExitCode()
}

// codeOf returns the exit code as shells report it.
func codeOf(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
