//go:build !unix && !windows

package group

import "os/exec"

// Group is a command. The system has no groups.
type Group struct{ cmd *exec.Cmd }

// Start starts a command.
func Start(cmd *exec.Cmd, _ bool) (*Group, error) { return &Group{cmd}, cmd.Start() }

// Terminate is Kill: there is no way to ask.
func (g *Group) Terminate() { g.Kill() }

// Kill begins to end the process.
func (g *Group) Kill() { _ = g.cmd.Process.Kill() }

// Empty reports whether the process has ended.
func (g *Group) Empty() bool { return g.cmd.ProcessState != nil }
