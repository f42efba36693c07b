package telemetry

import "time"

// modelClock measures how long a turn waits for the model. No event reports the start of a
// request to the model, because Codex does not report it to the bridge, so the clock infers
// it. A request starts when the turn begins, or when the last open call ends, and it ends when
// its tokens are counted. The zero value is a turn that has not begun.
type modelClock struct {
	since time.Time // the start of the request; zero if the turn does not wait for the model
	// assumed means that no event confirms the request: the model has answered, or its
	// calls have ended. A call that follows refutes it.
	assumed bool
	calls   map[any]bool // the open calls: ids of commands, tools and patches, and questions
}

// begin records that a request starts.
func (c *modelClock) begin() { c.since, c.assumed = time.Now(), false }

// assume records that a request has probably started, unless a call is open.
func (c *modelClock) assume() {
	if len(c.calls) == 0 {
		c.since, c.assumed = time.Now(), true
	}
}

// beginCall records that a call is open. A call may begin while the model still answers, so
// it ends only an assumed request.
func (c *modelClock) beginCall(key any) {
	if c.calls == nil {
		c.calls = map[any]bool{}
	}
	c.calls[key] = true
	if c.assumed {
		c.since, c.assumed = time.Time{}, false
	}
}

// endCall records that a call has ended.
func (c *modelClock) endCall(key any) {
	delete(c.calls, key)
	if c.since.IsZero() {
		c.assume()
	}
}

// end ends the request and returns its start, or the zero time if there was none. done
// means that the turn is over, which refutes an assumed request.
func (c *modelClock) end(done bool) time.Time {
	since := c.since
	if c.assumed && done {
		since = time.Time{}
	}
	c.since, c.assumed = time.Time{}, false
	return since
}
