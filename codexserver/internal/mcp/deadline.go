package mcp

import (
	"context"
	"time"
)

// deadline ends a call before its client gives up a request of it: the call then has what is known,
// and its turn continues in the background.
type deadline struct {
	late context.Context // ends at the deadline
	come context.CancelFunc
}

func newDeadline() deadline {
	late, come := context.WithCancel(context.Background())
	return deadline{late, come}
}

// within sets the deadline for a request that may take most, unless that is 0, until stop is called.
// The zero deadline of a call that another server began is never set.
func (d deadline) within(most time.Duration, began time.Time) (stop func()) {
	if most == 0 || d.come == nil {
		return func() {}
	}
	timer := time.AfterFunc(time.Until(began.Add(most)), d.come)
	return func() { timer.Stop() }
}

// of returns what [tools.Call] knows of the deadline of a call whose first request may take most.
func (d deadline) of(most time.Duration) context.Context {
	if most == 0 {
		return nil
	}
	return d.late
}
