//go:build !linux

package run

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Ready reports whether this program can start processes.
func Ready() error { return nil }

// Main does nothing on this system.
func Main(Confine) {}

// SealDescriptors does nothing on this system.
func SealDescriptors() error { return nil }

// canLeave reports that processes which a command leaves running could not be found later.
const canLeave = false

// launch starts the command.
func (p *Process) launch(cmd *exec.Cmd, _ string) error {
	if err := checkBatch(runtime.GOOS, cmd); err != nil {
		return err
	}
	p.cmd, cmd.SysProcAttr = cmd, groupAttr()
	if runtime.GOOS == "windows" { // else a batch file starts programs of the working folder, which may be a repository
		cmd.Env = append(cmd.Environ(), "NoDefaultCurrentDirectoryInExePath=1")
	}
	cmd.WaitDelay = stragglerGrace // the first process has ended then
	if err := cmd.Start(); err != nil {
		return err
	}
	p.PID = cmd.Process.Pid
	close(p.begun)
	return nil
}

// watch waits until the first process has ended.
func (p *Process) watch() {
	_ = p.cmd.Wait() // ProcessState has the result
	p.status, p.known = p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	p.settle()
}

// resume does nothing: there is no launcher.
func (p *Process) resume() error { return nil }

// Terminate asks the process and its group to end.
func (p *Process) Terminate() { terminateGroup(p.PID) }

// End kills the process and its group. It returns [ErrAlive] if the process cannot be
// killed.
func (p *Process) End() error {
	killGroup(p.PID)
	if !within(p.gone, Grace) {
		return ErrAlive
	}
	return nil
}
