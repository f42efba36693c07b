//go:build unix

package run

import "syscall"

// sessionAttr makes the process the leader of a new session and process group without a
// terminal.
func sessionAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
