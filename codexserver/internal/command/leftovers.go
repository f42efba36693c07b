package command

import (
	"slices"
	"sync"
)

// Leftovers are what the commands of a conversation left running, such as a
// server that they started in the background. The zero value is ready. It is
// safe for concurrent use.
type Leftovers struct {
	mu     sync.Mutex
	left   []leftover
	closed bool
}

type leftover struct {
	process kept
	output  *pipes
}

// add takes what is left of a command, and drops its further output. It reports
// false when it is closed.
func (l *Leftovers) add(p kept, output *pipes) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.left = slices.DeleteFunc(l.left, func(o leftover) bool { return isClosed(o.process.Gone()) && isClosed(o.output.done) })
	output.drop()
	if isClosed(p.Gone()) && isClosed(output.done) {
		return true // the usual case
	}
	l.left = append(l.left, leftover{p, output})
	return true
}

// Close kills what is left, and what is added later is killed at once.
func (l *Leftovers) Close() {
	l.mu.Lock()
	left := l.left
	l.left, l.closed = nil, true
	l.mu.Unlock()
	var ending sync.WaitGroup
	for _, o := range left {
		ending.Go(func() {
			_, _ = o.process.end()
			if !o.output.wait(drainGrace) {
				o.output.abandon()
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
