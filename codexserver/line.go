package codexserver

import (
	"context"
	"sync"
)

// line is a lock that is handed on in the order in which places were taken.
// The zero line is free.
type line struct {
	mu     sync.Mutex
	places []*place // the first one holds the lock
}

// place is one's turn in a line.
type place struct {
	line  *line
	first chan struct{} // closed when the place is the first
}

// join takes the last place, without waiting.
func (l *line) join() *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &place{line: l, first: make(chan struct{})}
	l.places = append(l.places, p)
	if len(l.places) == 1 {
		close(p.first)
	}
	return p
}

// wait waits to be the first. When ctx ends before that it returns the cause;
// the place is then still to be left.
func (p *place) wait(ctx context.Context) error {
	select {
	case <-p.first:
		return nil
	default:
	}
	select {
	case <-p.first:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives the place up.
func (p *place) leave() {
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.places {
		if other == p {
			l.places = append(l.places[:i], l.places[i+1:]...)
			if i == 0 && len(l.places) > 0 {
				close(l.places[0].first)
			}
			return
		}
	}
}
