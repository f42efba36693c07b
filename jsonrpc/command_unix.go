//go:build unix

package jsonrpc

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child the leader of a process group.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	if !cmd.SysProcAttr.Setsid { // a session leader has a group already
		cmd.SysProcAttr.Setpgid = true
	}
}

// A negative number names the group. kill fails only if no process is left in it.

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
