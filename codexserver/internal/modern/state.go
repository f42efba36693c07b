package modern

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/go-json-experiment/json"
)

// maxEnded is how many calls are kept after their end for a client that comes late.
const maxEnded = 256

// stateLife is how long the state of a call is good for.
const stateLife = 24 * time.Hour

// states are the calls that wait for a client to come back, by the one-time number of the
// state that it was given. The seal of a state authorises nothing, because commands can
// read its key: the number must be in this table. The zero value is ready.
type states struct {
	mu       sync.Mutex
	instance string
	parked   map[string]*state
	enough   int // how many states the last sweep left
}

// state is one call that waits for its client.
type state struct {
	call   *call
	number string
	keys   []string // of the questions that were asked
	issued time.Time
}

// ticket is what a client keeps of a state.
type ticket struct {
	Instance string    `json:"i"`
	Process  int       `json:"p"`
	Number   string    `json:"n"`
	Thread   string    `json:"t"`
	Keys     []string  `json:"k"`
	Issued   time.Time `json:"at"`
	Digest   string    `json:"d"`

	Principal string `json:"u,omitempty"`
}

// park returns the state of a call whose questions go out to the client.
func (s *Session) park(c *call, keys []string) (string, error) {
	now := time.Now()
	t := ticket{Process: os.Getpid(), Number: rand.Text(), Keys: keys, Issued: now.UTC(), Digest: hex.EncodeToString(c.digest[:]), Principal: s.principal}
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
	sealed, err := s.server.Seal.seal(plain)
	if err != nil {
		return "", err
	}
	ss.sweep(now)
	ss.parked[t.Number] = &state{call: c, number: t.Number, keys: keys, issued: now}
	return sealed, nil
}

// sweep forgets the states that are too old, and all but the newest of those whose call
// has ended without a client coming back. It runs when there are many more states than it
// left. ss.mu is held.
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

// resume returns the call that a state names, once. Without one it returns what
// the client is answered: a result when the server was restarted, else an error.
// Nothing runs then.
func (s *Session) resume(sealed string, d digest) (*state, any, error) {
	refused := invalid("/requestState", "not the state of an open call of this tool with these arguments, or used before")
	plain, err := s.server.Seal.open(sealed)
	if err != nil {
		return nil, nil, refused
	}
	var t ticket
	if err := json.Unmarshal(plain, &t); err != nil || t.Principal != s.principal || t.Digest != hex.EncodeToString(d[:]) || time.Since(t.Issued) > stateLife {
		return nil, nil, refused
	}
	ss := &s.states
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if t.Instance != ss.instance {
		if !lives(t.Process) {
			t.Process = 0
		}
		return nil, (&call{session: s}).complete(tools.Lost(t.Thread, t.Process)), nil
	}
	st := ss.parked[t.Number]
	if st == nil || st.call.digest != d {
		return nil, nil, refused
	}
	delete(ss.parked, t.Number)
	return st, nil, nil
}
