package page

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
)

// A conversation is one section of the page.
type conversation struct {
	header
	thread   approval.Thread // as it was named last; Stop is set
	folder   string          // of the last patch that was asked about; paths are relative to it
	entries  []*entry        // oldest first
	bytes    int             // of the entries
	revision uint64
	live     live
}

// live are the entries of the running turn that its next events may continue.
type live struct {
	speech, thought, plan, diff *entry
	calls                       map[string]*entry // running commands, patches and tools by call id
	failed                      bool              // the turn has reported an error
}

// maxCalls is how many running calls of a turn the page follows.
const maxCalls = 100

// begin follows the entry of a call. That of one call too many does not change any more.
func (l *live) begin(id string, e *entry) {
	if e.Running = len(l.calls) < maxCalls; e.Running {
		l.calls[id] = e
	}
}

// end returns the entry of a call that has ended, or nil.
func (l *live) end(id string) *entry {
	e := l.calls[id]
	delete(l.calls, id)
	return e
}

// endAll returns the entries of the calls that had no end, and continues nothing any more.
func (l *live) endAll() iter.Seq[*entry] {
	calls := l.calls
	*l = live{calls: map[string]*entry{}, failed: l.failed}
	return maps.Values(calls)
}

// forget lets later events continue an entry no more.
func (l *live) forget(e *entry) {
	for _, next := range []**entry{&l.speech, &l.thought, &l.plan, &l.diff} {
		if *next == e {
			*next = nil
		}
	}
	maps.DeleteFunc(l.calls, func(_ string, call *entry) bool { return call == e })
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
		live:   live{calls: map[string]*entry{}},
	}
	c.reach(t)
	return c
}

// reach takes what a page calls of a thread.
func (c *conversation) reach(t approval.Thread) {
	if t.Stop == nil {
		t.Stop = func() {}
	}
	c.thread = t
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
	c.live.forget(e)
}

// asking reports whether the conversation has an open question.
func (c *conversation) asking() bool {
	return slices.ContainsFunc(c.entries, (*entry).open)
}

// rank orders conversations: the lowest is removed first.
func (c *conversation) rank() int {
	return slices.Index([]string{stateClosed, "", stateRunning}, c.State)
}
