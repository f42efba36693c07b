package proc

import (
	"slices"
	"sync"
)

// Leftovers are the processes that the commands of a conversation left running, such as a
// server in the background. The zero value is ready. It is safe for concurrent use.
type Leftovers struct {
	mu     sync.Mutex
	left   []keptProcess
	closed bool
}

// add takes the rest of a command, and drops its further output. It returns false after
// Close.
func (l *Leftovers) add(p keptProcess) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	p.output.drop()
	l.left = slices.DeleteFunc(append(l.left, p), func(p keptProcess) bool { return isClosed(p.Gone()) && isClosed(p.output.done) })
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
		ending.Go(func() {
			_, _ = p.end()
			if !p.output.wait(drainGrace) {
				p.output.abandon()
			}
		})
	}
	ending.Wait()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
