package mcp

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"
)

// maxEnded is how many ended calls are kept for clients that return late.
const maxEnded = 256

// stateLife is how long the state of a call is valid.
const stateLife = 24 * time.Hour

// states are the calls that wait for a client to return, by the random texts that were sent to
// it. They are only in memory. The zero value is ready.
type states struct {
	mu     sync.Mutex
	parked map[string]*call
	ended  []string // those of calls that have ended, in this order
}

// state names a call in the next request of its client. A call has one at a time. The mutex of the session's states
// guards it.
type state struct {
	digest digest // of the call, which the request must have again
	text   string
	keys   []string // of the questions that were asked
	issued time.Time
}

// park returns the text of a state for a call whose questions are sent to the client.
func (ss *states) park(c *call, keys []string) string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.parked == nil {
		ss.parked = map[string]*call{}
	}
	c.state = state{c.state.digest, rand.Text(), keys, time.Now()}
	ss.parked[c.state.text] = c
	if c.over() {
		ss.forget(c)
	}
	return c.state.text
}

// end ends a call, which has its result.
func (ss *states) end(c *call) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	close(c.done)
	if ss.parked[c.state.text] == c {
		ss.forget(c)
	}
}

// forget removes the state of a call that has ended after those of many others. The caller holds ss.mu.
func (ss *states) forget(c *call) {
	if ss.ended = append(ss.ended, c.state.text); len(ss.ended) > maxEnded {
		delete(ss.parked, ss.ended[0])
		ss.ended = ss.ended[1:]
	}
}

// resume returns the call with a state of a client and the keys of its questions, and invalidates the state.
// It fails if there is no such call: after a restart there is none.
func (ss *states) resume(text string, d digest) (*call, []string, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	c := ss.parked[text]
	if c == nil || c.state.digest != d || time.Since(c.state.issued) > stateLife {
		return nil, nil, Invalid("/requestState", "not the state of an open call of this tool with these arguments: it was used before, or the server was restarted. "+
			"Nothing was done here; codex-reply continues a conversation")
	}
	delete(ss.parked, text)
	ss.ended = slices.DeleteFunc(ss.ended, func(ended string) bool { return ended == text })
	return c, c.state.keys, nil
}

// Parked reports whether the client of a call may come back with an answer for this process. The turn of a task, or
// in the background, does not need the client.
func (s *ModernSession) Parked() bool {
	s.states.mu.Lock()
	defer s.states.mu.Unlock()
	for _, c := range s.states.parked {
		if !c.over() && !c.isAlone() {
			return true
		}
	}
	return false
}

// isAlone reports whether the turn continues without the client.
func (c *call) isAlone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attached.alone
}
