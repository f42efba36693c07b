package run

import (
	"slices"
	"sync"
)

// Leftovers are the processes that the commands of a conversation left running, such as a
// server in the background. The zero value is ready. It is safe for concurrent use.
type Leftovers struct {
	mu     sync.Mutex
	left   []leftover
	closed bool
}

type leftover struct {
	*Process
	output *pipes
}

// add takes the rest of a command whose first process has ended, and drops its further
// output. It returns false after Close, and if the rest could not be found later.
func (l *Leftovers) add(p *Process, output *pipes) bool {
	if _, err := p.Status(); err != nil || !canLeave {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	output.drop()
	l.left = slices.DeleteFunc(append(l.left, leftover{p, output}), func(p leftover) bool { return isClosed(p.Gone()) && isClosed(p.output.done) })
	return true
}

// Close kills the processes. Commands that end later do not leave any.
func (l *Leftovers) Close() {
	l.mu.Lock()
	left := l.left
	l.left, l.closed = nil, true
	l.mu.Unlock()
	var ending sync.WaitGroup
	for _, p := range left {
		ending.Go(func() { _ = p.output.end(p.Process) })
	}
	ending.Wait()
}
