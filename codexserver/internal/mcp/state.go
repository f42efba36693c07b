package mcp

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/go-json-experiment/json"
)

// maxEnded is how many ended calls are kept for clients that return late.
const maxEnded = 256

// stateLife is how long the state of a call is valid.
const stateLife = 24 * time.Hour

// states are the calls that wait for a client to return, by the one-time number in the
// client's state. The seal of a state does not authorise anything, because commands can
// read its key. Only a number in this table does. The zero value is ready.
type states struct {
	mu       sync.Mutex
	instance string
	parked   map[string]*state
	enough   int // how many states the last sweep kept
}

// state is one call that waits for its client.
type state struct {
	call   *call
	number string
	keys   []string // of the questions that were asked
	issued time.Time
}

// ticket is the content of the sealed state that a client keeps.
type ticket struct {
	Instance string    `json:"i"`
	Process  int       `json:"p"`
	Start    string    `json:"s"` // of the process
	Number   string    `json:"n"`
	Thread   string    `json:"t"`
	Keys     []string  `json:"k"`
	Issued   time.Time `json:"at"`
	Digest   string    `json:"d"`

	Principal string `json:"u,omitempty"`
}

// park returns a sealed state for a call whose questions are sent to the client.
func (s *ModernSession) park(c *call, keys []string) (string, error) {
	now := time.Now()
	t := ticket{Process: os.Getpid(), Start: startOf(os.Getpid()), Number: rand.Text(), Keys: keys, Issued: now.UTC(), Digest: hex.EncodeToString(c.digest[:]), Principal: s.client.principal()}
	c.mu.Lock()
	if c.job != nil {
		t.Thread = c.job.ThreadID()
	}
	c.mu.Unlock()
	ss := &s.states
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.parked == nil {
		ss.parked, ss.instance = map[string]*state{}, rand.Text()
	}
	t.Instance = ss.instance
	plain, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	sealed, err := s.client.server.Seal.seal(plain)
	if err != nil {
		return "", err
	}
	ss.sweep(now)
	ss.parked[t.Number] = &state{call: c, number: t.Number, keys: keys, issued: now}
	return sealed, nil
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
			delete(ss.parked, st.number)
		case st.call.over():
			ended = append(ended, st)
		}
	}
	slices.SortFunc(ended, func(a, b *state) int { return a.issued.Compare(b.issued) })
	for _, st := range ended[:max(len(ended)-maxEnded, 0)] {
		delete(ss.parked, st.number)
	}
	ss.enough = len(ss.parked)
}

// Parked reports whether the client of a call may come back with an answer for this process. The turn of a task, or
// in the background, does not need the client.
func (s *ModernSession) Parked() bool {
	s.states.mu.Lock()
	defer s.states.mu.Unlock()
	for _, st := range s.states.parked {
		if c := st.call; !c.over() && !c.isAdrift() {
			return true
		}
	}
	return false
}

// resume returns the call of a state, and invalidates the state. If there is no such call
// it returns the answer for the client: a result if the server was restarted, and otherwise
// an error.
func (s *ModernSession) resume(sealed string, d digest) (*state, any, error) {
	refused := Invalid("/requestState", "not the state of an open call of this tool with these arguments, or used before")
	plain, err := s.client.server.Seal.open(sealed)
	if err != nil {
		return nil, nil, refused
	}
	var t ticket
	if err := json.Unmarshal(plain, &t); err != nil || t.Principal != s.client.principal() || t.Digest != hex.EncodeToString(d[:]) || time.Since(t.Issued) > stateLife {
		return nil, nil, refused
	}
	ss := &s.states
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if t.Instance != ss.instance {
		if !lives(t.Process, t.Start) {
			t.Process = 0
		}
		return nil, (&call{session: s}).complete(mcptool.Lost(t.Thread, t.Process)), nil
	}
	st := ss.parked[t.Number]
	if st == nil || st.call.digest != d {
		return nil, nil, refused
	}
	delete(ss.parked, t.Number)
	return st, nil, nil
}
