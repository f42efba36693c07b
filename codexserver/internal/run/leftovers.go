package run

import (
	"slices"
	"sync"
)

// Leftovers are what the commands of a conversation left running. The zero value is ready, also for concurrent use.
type Leftovers struct {
	mu     sync.Mutex
	left   []*Process
	closed bool
}

// add takes the rest of a command whose first process has ended. It returns false after Close, and if the rest could not be found later.
func (l *Leftovers) add(p *Process) bool {
	if !p.known || !canLeave {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.left = slices.DeleteFunc(append(l.left, p), func(p *Process) bool { return isClosed(p.over) })
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
		ending.Go(func() { _ = p.End() })
	}
	ending.Wait()
}
