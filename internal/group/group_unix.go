//go:build unix

package group

import (
	"errors"
	"os/exec"
	"syscall"
)

// Group is a command with the processes that it started, but those that have left its process group.
type Group struct{ leader int }

// Start starts a command as the leader of a process group. With session, or if its attributes say so, it
// also leads a session without a terminal.
func Start(cmd *exec.Cmd, session bool) (*Group, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	a := cmd.SysProcAttr
	a.Setsid = a.Setsid || session
	a.Setpgid = a.Setpgid || !a.Setsid // a session's leader has a group already
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Group{cmd.Process.Pid}, nil
}

// A negative number names the group. It is not used again while a process of the group lives.

// Terminate asks the processes to end.
func (g *Group) Terminate() { _ = syscall.Kill(-g.leader, syscall.SIGTERM) }

// Kill begins to end the processes.
func (g *Group) Kill() { _ = syscall.Kill(-g.leader, syscall.SIGKILL) }

// Empty reports whether all processes have ended.
func (g *Group) Empty() bool { return errors.Is(syscall.Kill(-g.leader, 0), syscall.ESRCH) }
