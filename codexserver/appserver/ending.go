package appserver

import (
	"errors"
	"fmt"
	"time"
)

// ending is the end of the connection to an app-server.
type ending struct {
	gone   chan struct{} // closed when err and at are set, which then stay
	err    error         // the first reason
	at     time.Time
	stderr *tail // what the app-server wrote
}

// record records the end, once. The child's lock is held.
func (e *ending) record(err error) {
	if e.over() {
		return
	}
	e.err, e.at = err, time.Now()
	close(e.gone)
}

// over reports whether the connection has ended.
func (e *ending) over() bool {
	select {
	case <-e.gone:
		return true
	default:
		return false
	}
}

// wait waits until the reason is known, for a bounded time, and returns what the app-server wrote about its
// end, and the reason.
func (e *ending) wait() (said string, why error) {
	limit := time.NewTimer(obituaryLimit)
	defer limit.Stop()
	select {
	case <-e.gone:
		return e.stderr.last(e.at), e.err
	case <-limit.C:
		return e.stderr.last(time.Time{}), nil
	}
}

// obituary returns how the app-server ended. The caller has seen the connection fail.
func (c *child) obituary() error {
	said, err := c.end.wait()
	var late *timeoutError
	switch {
	case errors.Is(err, errClosed):
		return errClosed
	case errors.As(err, &late):
		return fmt.Errorf("%w and was ended", err)
	}
	text := "codex app-server has ended"
	var exit interface { // a run.ExitError, or an exec.ExitError of a transport
		error
		ExitCode() int
	}
	if errors.As(err, &exit) {
		text += " (" + exit.Error() + ")"
	}
	if said != "" {
		text += ": " + said
	}
	return told(text)
}
