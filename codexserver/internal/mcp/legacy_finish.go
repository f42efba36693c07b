package mcp

import "time"

// drain is how long requests may continue after a client with a session has disconnected.
// It is enough for short requests, but not for a turn.
const drain = 50 * time.Millisecond

// inputEnd decides about calls when the client's input ends. If the client has begun a
// session, it has disconnected, and its turns end. Otherwise the input is a file of calls,
// which are finished. The session's mutex guards it.
type inputEnd struct {
	stop           func() // ends the handling of requests
	began, reached bool
	timer          *time.Timer
}

// begin records that the client has begun a session.
func (e *inputEnd) begin() { e.note(&e.began) }

// reach records the end of the input.
func (e *inputEnd) reach() { e.note(&e.reached) }

func (e *inputEnd) note(what *bool) {
	*what = true
	if e.began && e.reached && e.timer == nil {
		e.timer = time.AfterFunc(drain, e.stop)
	}
}

func (e *inputEnd) close() {
	if e.timer != nil {
		e.timer.Stop()
	}
}
