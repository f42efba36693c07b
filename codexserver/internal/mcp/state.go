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
	parked map[string]*state
	enough int // how many states the last sweep kept
}

// state is one call that waits for its client.
type state struct {
	call   *call
	text   string
	keys   []string // of the questions that were asked
	issued time.Time
}

// park returns a state for a call whose questions are sent to the client.
func (s *ModernSession) park(c *call, keys []string) string {
	st := &state{call: c, text: rand.Text(), keys: keys, issued: time.Now()}
	ss := &s.states
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.parked == nil {
		ss.parked = map[string]*state{}
	}
	ss.sweep(st.issued)
	ss.parked[st.text] = st
	return st.text
}

// sweep removes states that are too old, and all but the newest of those whose call has
// ended. It does nothing unless there are many more states than after the last sweep. The
// caller holds ss.mu.
func (ss *states) sweep(now time.Time) {
	if len(ss.parked) < ss.enough+maxEnded {
		return
	}
	var ended []*state
	for _, st := range ss.parked {
		switch {
		case now.Sub(st.issued) > stateLife:
			delete(ss.parked, st.text)
		case st.call.over():
			ended = append(ended, st)
		}
	}
	slices.SortFunc(ended, func(a, b *state) int { return a.issued.Compare(b.issued) })
	for _, st := range ended[:max(len(ended)-maxEnded, 0)] {
		delete(ss.parked, st.text)
	}
	ss.enough = len(ss.parked)
}

// Parked reports whether the client of a call may come back with an answer for this process. The turn of a task, or
// in the background, does not need the client.
func (s *ModernSession) Parked() bool {
	s.states.mu.Lock()
	defer s.states.mu.Unlock()
	for _, st := range s.states.parked {
		if c := st.call; !c.over() && !c.isAlone() {
			return true
		}
	}
	return false
}

// resume returns what has a state of a client, and invalidates the state. It fails if there is no
// such call: after a restart there is none.
func (s *ModernSession) resume(text string, d digest) (*state, error) {
	ss := &s.states
	ss.mu.Lock()
	defer ss.mu.Unlock()
	st := ss.parked[text]
	if st == nil || st.call.digest != d || time.Since(st.issued) > stateLife {
		return nil, Invalid("/requestState", "not the state of an open call of this tool with these arguments: it was used before, or the server was restarted. "+
			"Nothing was done here; codex-reply continues a conversation")
	}
	delete(ss.parked, text)
	return st, nil
}
