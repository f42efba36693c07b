package page

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
)

// A conversation is one section of the page.
type conversation struct {
	header
	thread   string
	server   string
	stop     func()
	silent   func() time.Time // see [approval.Thread]
	folder   string           // of the last patch that was asked about; paths are relative to it
	entries  []*entry         // oldest first
	bytes    int              // of the entries
	revision uint64

	// The entries that the next events may continue.
	speech, thought, plan, diff *entry
	calls                       map[string]*entry // running commands, patches and tools by call id
	failed                      bool              // the turn has reported an error
}

// header is what a page shows of a conversation in addition to its entries.
type header struct {
	// ID is the thread's, with a number where other servers run it too.
	ID string `json:"id"`
	// Began is a Unix time in ms.
	Began int64 `json:"began"`
	// Task is the first message of the user.
	Task string `json:"task"`
	// Model is the model's name, if it is known.
	Model string `json:"model"`
	// State is "running" during a turn, "" between turns, and "closed" at the end.
	State string `json:"state"`
	// StuckAt is when the model counts as stuck if it stays silent, a Unix time in ms;
	// 0 while no answer of the model is expected.
	StuckAt int64 `json:"stuckAt,omitzero"`
	// From is the id of the first entry that is kept; older ones were removed.
	From int `json:"from"`
}

const (
	stateRunning = "running"
	stateClosed  = "closed"
)

// conversationView is a conversation with the entries that have changed.
type conversationView struct {
	header
	Entries []entry `json:"entries"`
}

func newConversation(t approval.Thread) *conversation {
	c := &conversation{
		header: header{ID: strings.ToValidUTF8(t.ID, "\uFFFD"), Began: time.Now().UnixMilli()},
		thread: t.ID,
		server: t.Server,
		calls:  map[string]*entry{},
	}
	c.reach(t)
	return c
}

// reach takes what a page calls of a thread.
func (c *conversation) reach(t approval.Thread) {
	if c.stop = t.Stop; t.Stop == nil {
		c.stop = func() {}
	}
	if c.silent = t.Silent; t.Silent == nil {
		c.silent = func() time.Time { return time.Time{} }
	}
}

func (c *conversation) since(seen uint64) conversationView {
	v := conversationView{header: c.header, Entries: []entry{}}
	v.Task, v.Model = line(c.Task), line(c.Model)
	for _, e := range c.entries {
		if e.revision > seen {
			v.Entries = append(v.Entries, *e)
		}
	}
	return v
}

// weigh updates the size of the conversation after an entry has changed. Open questions
// do not count: [board] bounds them apart.
func (c *conversation) weigh(e *entry) {
	if e.dropped {
		return
	}
	size := 0
	if !e.open() {
		size = e.size()
	}
	c.bytes += size - e.weight
	e.weight = size
}

// drop removes an entry. A later event that would have continued it starts a new entry
// or is ignored.
func (c *conversation) drop(i int) {
	e := c.entries[i]
	c.bytes -= e.weight
	e.dropped = true
	c.entries = slices.Delete(c.entries, i, i+1)
	for _, next := range []**entry{&c.speech, &c.thought, &c.plan, &c.diff} {
		if *next == e {
			*next = nil
		}
	}
	maps.DeleteFunc(c.calls, func(_ string, call *entry) bool { return call == e })
}

// asking reports whether the conversation has an open question.
func (c *conversation) asking() bool {
	return slices.ContainsFunc(c.entries, (*entry).open)
}

// rank orders conversations: the lowest is removed first.
func (c *conversation) rank() int {
	return slices.Index([]string{stateClosed, "", stateRunning}, c.State)
}
