package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// process is a started command. Other processes of the command may outlive the first.
type process interface {
	// exited returns a channel that is closed when the first process has ended.
	exited() <-chan struct{}
	// end kills all processes and returns the exit code of the first, or -1 if it cannot
	// be killed.
	end() (int, error)
	// leave passes the remaining processes and their output to l. The first process must
	// have ended. It returns what end returns.
	leave(l *Leftovers) (int, error)
}

// startSpec starts cmd.
func startSpec(ctx context.Context, cmd *exec.Cmd, output *pipes, spec Spec) (process, error) {
	var folder *os.File
	if spec.Exact {
		var err error
		if folder, err = OpenFolder(spec.Dir); err != nil {
			return nil, fmt.Errorf("working folder: %w", err)
		}
		defer folder.Close()
	}
	if order, ok := orderOf(spec); ok {
		return startKept(ctx, cmd, output, spec.Keepers, func(cmd *exec.Cmd) (Order, error) {
			o, err := order(cmd)
			o.Folder = folder
			return o, err
		})
	}
	if folder != nil {
		cmd.Dir = folderPath(folder)
	}
	return startOwn(cmd, output, spec.Starter)
}

// own is a command that this process started itself.
type own struct {
	cmd    *exec.Cmd
	output *pipes
	leash  *leash
	done   chan struct{}
}

func startOwn(cmd *exec.Cmd, output *pipes, starter Starter) (*own, error) {
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
	p := &own{cmd: cmd, output: output, leash: l, done: make(chan struct{})}
	go func() {
		awaitExit(cmd)
		close(p.done)
	}()
	return p, nil
}

func (p *own) exited() <-chan struct{} { return p.done }

func (p *own) end() (int, error) {
	killAll(p.cmd.Process.Pid, p.leash)
	p.leash.drop()
	timer := time.NewTimer(killGrace)
	defer timer.Stop()
	select {
	case <-p.done:
		return exitCode(p.reap()), nil
	case <-timer.C:
		go func() { // ends with the process
			<-p.done
			p.reap()
		}()
		return -1, nil
	}
}

// leave kills the remaining processes, because they could not be found later.
func (p *own) leave(*Leftovers) (int, error) {
	code, err := p.end()
	if !p.output.wait(drainGrace) {
		p.output.abandon()
	}
	return code, err
}

func (p *own) reap() *os.ProcessState {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Wait() // ProcessState has the result
	}
	return p.cmd.ProcessState
}
