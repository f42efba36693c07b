//go:build !linux

package run

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/internal/group"
)

// Ready reports whether this program can start processes.
func Ready() error { return nil }

// Rooms do not exist on this system.
type Rooms struct{}

// Main does nothing on this system.
func Main(Confine) {}

// SealDescriptors does nothing on this system.
func SealDescriptors() error { return nil }

// canLeave reports that processes which a command leaves running could not be found later.
const canLeave = false

// hold is the group of the process.
type hold struct{ group *group.Group }

// release does nothing: End has killed the group.
func (hold) release() {}

// launch starts the command.
func (p *Process) launch(cmd *exec.Cmd, _ string) error {
	if err := CheckBatch(runtime.GOOS, cmd.Path, cmd.Args); err != nil {
		return err
	}
	p.cmd = cmd
	if runtime.GOOS == "windows" { // else a batch file starts programs of the working folder, which may be a repository
		cmd.Env = append(cmd.Environ(), "NoDefaultCurrentDirectoryInExePath=1")
	}
	cmd.WaitDelay = stragglerGrace // the first process has ended then
	var started *group.Group
	err := withSignals(func() (err error) {
		started, err = group.Start(cmd, true)
		return err
	})
	if err != nil {
		return err
	}
	p.group, p.PID = started, cmd.Process.Pid
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
func (p *Process) Terminate() { p.group.Terminate() }

// End kills the process and its group, and waits until the group is empty. It returns [ErrAlive] if the
// process cannot be killed.
func (p *Process) End() error {
	p.group.Kill()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(Grace); !p.group.Empty() && time.Now().Before(deadline); {
		<-tick.C
	}
	if !within(p.gone, Grace) {
		return ErrAlive
	}
	return nil
}
