package proc

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
)

// orderOf returns the function that makes the order for a keeper. It returns false when
// there is no keeper, or when the starter must start the command itself.
func orderOf(spec Spec) (order func(*exec.Cmd) (Order, error), ok bool) {
	if spec.Keepers == nil {
		return nil, false
	}
	if spec.Starter == nil {
		return func(cmd *exec.Cmd) (Order, error) { return Order{Cmd: cmd}, nil }, true
	}
	o, ok := spec.Starter.(Orderer)
	if !ok {
		return nil, false
	}
	return o.Order, true
}

// keptProcess is a command under a keeper.
type keptProcess struct {
	*Process
	output *pipes
}

func startKept(ctx context.Context, cmd *exec.Cmd, output *pipes, pool *Pool, order func(*exec.Cmd) (Order, error)) (keptProcess, error) {
	o, err := order(cmd)
	if err != nil {
		return keptProcess{}, err
	}
	p, err := pool.Start(ctx, o)
	if errors.Is(err, ErrLost) { // the command may have started and killed its keeper
		killLost(0, output)
	}
	return keptProcess{p, output}, err
}

func (p keptProcess) exited() <-chan struct{} { return p.Exited() }

func (p keptProcess) end() (int, error) {
	err := p.End()
	if errors.Is(err, ErrLost) {
		killLost(p.PID, p.output)
		return -1, fmt.Errorf("%w: those of its processes that could be found were killed", err)
	}
	return p.code(), err
}

// code returns the exit code of the first process, or -1 if it has not ended.
func (p keptProcess) code() int {
	select {
	case <-p.Exited():
	default:
		return -1
	}
	status, err := p.Status()
	if err != nil {
		return -1
	}
	return codeOf(status)
}

func (p keptProcess) leave(l *Leftovers) (int, error) {
	if _, err := p.Status(); err == nil && l.add(p) {
		return p.code(), nil
	}
	code, err := p.end()
	if !p.output.wait(drainGrace) {
		p.output.abandon()
	}
	return code, err
}
