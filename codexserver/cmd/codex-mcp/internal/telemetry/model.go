package telemetry

import "time"

// modelClock finds in a turn's events when the model is waited for: from the turn's
// beginning, or from the end of what the model called for, until its tokens are
// counted. The zero value is a turn that has not begun.
type modelClock struct {
	since time.Time // zero while the model is not waited for
	// The model has answered, or has what it waited for. It is waited for since then,
	// unless it has called for something else.
	open  bool
	calls map[any]bool // what the model waits for: ids of calls, and questions
}

// begin notes that the model is asked.
func (c *modelClock) begin() { c.since, c.open = time.Now(), false }

// maybe notes that the model is asked again if it has called for nothing.
func (c *modelClock) maybe() {
	if len(c.calls) == 0 {
		c.since, c.open = time.Now(), true
	}
}

// call notes that the model waits for something. It may call while it answers.
func (c *modelClock) call(key any) {
	if c.calls == nil {
		c.calls = map[any]bool{}
	}
	c.calls[key] = true
	if c.open {
		c.since, c.open = time.Time{}, false
	}
}

// back notes that the model has what it waited for.
func (c *modelClock) back(key any) {
	delete(c.calls, key)
	if c.since.IsZero() {
		c.maybe()
	}
}

// end returns since when the model was waited for, the zero time when it was not. At
// the end of a turn that was done it was not asked again.
func (c *modelClock) end(done bool) time.Time {
	since := c.since
	if c.open && done {
		since = time.Time{}
	}
	c.since, c.open = time.Time{}, false
	return since
}
