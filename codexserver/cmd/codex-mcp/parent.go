package main

import (
	"context"
	"log/slog"
	"time"
)

const (
	// settle is how long the process that started this one must stay its parent to count as its host: programs that
	// start another one in the background end at once.
	settle = 2 * time.Second
	// parentTick is how often the parent is looked at.
	parentTick = time.Second
	// quiet is how long nobody may send anything after the host's end.
	quiet = 5 * time.Second
)

// parentage finds out when the host of a server on standard input has ended. Its end closes the input, unless another
// process holds that open, such as one that the host has started without closing its files.
type parentage struct {
	// parent returns the id of this process's parent.
	parent func() int
	// adopts reports whether a process becomes the parent of those whose own has ended. Such a one is no host, but
	// where a program that has ended has left this process.
	adopts func(ctx context.Context, pid int) bool
	// idle is that of the server.
	idle func() (idle bool, heard time.Time)
	log  *slog.Logger
}

// over waits for the end of the host and of what runs for it, and reports true. It reports false if ctx ends, or if
// nobody knows who the host is: there was somebody between the two, or somebody goes on sending.
func (p *parentage) over(ctx context.Context) bool {
	host := p.parent()
	if host <= 1 || !pause(ctx, settle) || p.parent() != host || p.adopts(ctx, host) {
		p.log.Debug("the server does not end with its host, which is not known")
		return false
	}
	p.log.Debug("the server ends with its host", "process", host)
	for p.parent() == host {
		if !pause(ctx, parentTick) {
			return false
		}
	}
	ended := time.Now()
	for since := ended; time.Since(since) < quiet; {
		if !pause(ctx, parentTick) {
			return false
		}
		idle, heard := p.idle()
		if heard.After(ended) {
			return false
		}
		if !idle {
			since = time.Now()
		}
	}
	return true
}

// pause waits for a time. It reports false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
