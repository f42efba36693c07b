package command

import (
	"os"
	"os/exec"
	"time"
)

// process is a started command.
type process struct {
	cmd    *exec.Cmd
	leash  *leash
	exited chan struct{} // closed when the first process has ended
}

// start starts cmd and begins to wait for it.
func start(cmd *exec.Cmd, starter Starter) (*process, error) {
	l, err := newLeash(cmd)
	if err != nil {
		return nil, err
	}
	if starter == nil {
		err = cmd.Start()
	} else {
		err = starter.Start(cmd)
	}
	if err != nil {
		l.drop()
		return nil, err
	}
	l.started()
	p := &process{cmd: cmd, leash: l, exited: make(chan struct{})}
	go func() {
		awaitExit(cmd)
		close(p.exited)
	}()
	return p, nil
}

// end kills every process of the command, collects the first one and gives its
// exit code, -1 when it cannot be killed.
func (p *process) end() int {
	killAll(p.cmd.Process.Pid, p.leash)
	p.leash.drop()
	timer := time.NewTimer(killGrace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return exitCode(p.reap())
	case <-timer.C:
		go func() { // it ends when the process does
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
