//go:build !unix

package jsonrpc

import "os/exec"

func ownGroup(*exec.Cmd) {}

// The errors of Kill say only that the process has exited.

func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
