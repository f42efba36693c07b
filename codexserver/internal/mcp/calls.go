package mcp

import (
	"crypto/rand"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// maxEnded is how many ended calls are kept for clients that return late.
const maxEnded = 256

// calls counts the calls that may take long. It has those that wait for a client to return, by their states,
// random texts that were sent to it. They are only in memory.
type calls struct {
	limit *slots.Limit

	// mu also guards what the calls, their inboxes, tasks and outlets say. It is held before the lock of a turn. Whoever holds
	// it must not wait for that of a thread, under which the events of its turn may wait for this one.
	mu     sync.Mutex
	parked map[string]*call
	ended  []string // those of calls that have ended, in this order
}

// park gives a call whose questions are sent to the client a new state, which it returns. The caller holds cs.mu.
func (cs *calls) park(c *call) string {
	c.state = rand.Text()
	cs.parked[c.state] = c
	if c.over() {
		cs.forget(c)
	}
	return c.state
}

// end ends a call with its result. The first one counts.
func (cs *calls) end(c *call, r *mcptypes.CallToolResult) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.over() {
		return
	}
	c.result = r
	close(c.done)
	if cs.parked[c.state] == c {
		cs.forget(c)
	}
}

// forget removes the state of a call that has ended after those of many others. The caller holds cs.mu.
func (cs *calls) forget(c *call) {
	if cs.ended = append(cs.ended, c.state); len(cs.ended) > maxEnded {
		delete(cs.parked, cs.ended[0])
		cs.ended = cs.ended[1:]
	}
}

// resume returns the call with a state of a client, and invalidates the state.
// It fails if there is no such call: after a restart there is none.
func (cs *calls) resume(text string, d digest) (*call, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.parked[text]
	if c == nil || c.digest != d {
		return nil, Invalid("/requestState", "not the state of an open call of this tool with these arguments: "+
			"it was used before, or the server was restarted. "+
			"Nothing was done here; codex-reply continues a conversation")
	}
	delete(cs.parked, text)
	cs.ended = slices.DeleteFunc(cs.ended, func(ended string) bool { return ended == text })
	return c, nil
}

// Parked reports whether the client of a call may come back with an answer for this process. The turn of a task, or
// in the background, does not need the client.
func (s *Session) Parked() bool {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	for _, c := range s.calls.parked {
		if !c.alone && !c.over() {
			return true
		}
	}
	return false
}
