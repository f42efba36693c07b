package command

import (
	"os"
	"os/exec"
	"runtime"
	"time"
)

// process is a started command.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the first process has ended
}

// start starts cmd on an OS thread of its own, which waits for it and, when
// there is a starter, ends with it: the starter may have restricted it.
func start(cmd *exec.Cmd, starter Starter) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		var err error
		runtime.LockOSThread()
		if starter == nil {
			defer runtime.UnlockOSThread()
			err = cmd.Start()
		} else {
			err = starter.Start(cmd) // never unlocked, so the thread ends here
		}
		started <- err
		if err == nil {
			awaitExit(cmd)
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// end kills every process of the command, collects the first one and gives its
// exit code, -1 when it cannot be killed.
func (p *process) end() int {
	killAll(p.cmd.Process.Pid)
	timer := time.NewTimer(killGrace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return exitCode(p.reap())
	case <-timer.C:
		go func() { // it is the thread's, until it ends by itself
			<-p.exited
			p.reap()
		}()
		return -1
	}
}

func (p *process) reap() *os.ProcessState {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Wait() // the state tells all
	}
	return p.cmd.ProcessState
}
