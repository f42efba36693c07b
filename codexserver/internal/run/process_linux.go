package run

import (
	"sync"
	"syscall"
	"time"
)

// Process is a command under a keeper.
type Process struct {
	// PID is the id of the command's first process.
	PID int

	pool   *Pool
	keeper *keeper
	exited chan struct{}
	gone   chan struct{}
	status syscall.WaitStatus
	lost   bool // the keeper ended before the first process
	failed bool // the keeper ended before the command

	mu   sync.Mutex
	over bool // the keeper no longer belongs to this process
}

// watch reads the keeper's reports of the command. When the command is gone, it returns
// the keeper to the pool.
func (p *Process) watch() {
	exited := false
	for {
		var r reply
		if _, err := p.keeper.receive(&r); err != nil {
			p.lost, p.failed = !exited, true
			break
		}
		if r.Status != nil && !exited {
			p.status, exited = *r.Status, true
			close(p.exited)
		}
		if r.Gone {
			p.release()
			p.pool.put(p.keeper)
			close(p.gone)
			return
		}
	}
	p.release()
	p.pool.discard(p.keeper)
	p.keeper.sweep()
	if !exited {
		close(p.exited)
	}
	close(p.gone)
}

func (p *Process) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// Exited returns a channel that is closed when the first process has ended, or the keeper
// is lost.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Gone returns a channel that is closed when all processes of the command have ended, or
// the keeper is lost.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Status waits until the first process has ended and returns its status. The error is
// [ErrLost] if the keeper ended first.
func (p *Process) Status() (syscall.WaitStatus, error) {
	<-p.exited
	if p.lost {
		return 0, ErrLost
	}
	return p.status, nil
}

// Terminate asks the processes of the command to end.
func (p *Process) Terminate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		_ = p.keeper.send(request{Terminate: true}) // fails when the keeper is lost
	}
}

// stop stops the processes of the command.
func (p *Process) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.keeper.stopCommand()
	}
}

// End kills all processes of the command and waits until they are gone, a little longer
// than [Grace] at most. It returns [ErrLost] if the keeper ended before the command, and
// [ErrAlive] if there are processes that the keeper cannot kill.
func (p *Process) End() error {
	p.mu.Lock()
	if !p.over {
		_ = p.keeper.send(request{End: true}) // fails when the keeper is lost
		defer p.keeper.keepRunning(p.stop)()
	}
	p.mu.Unlock()
	timer := time.NewTimer(Grace + Grace/4)
	defer timer.Stop()
	select {
	case <-p.gone:
		if p.failed {
			return ErrLost
		}
		return nil
	case <-timer.C:
		return ErrAlive
	}
}
