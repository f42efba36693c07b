package page

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
)

const (
	maxConversations = 32
	maxEntries       = 500
	maxBytes         = 1 << 20 // of a conversation's entries other than open questions
	maxText          = 64 << 10
)

// A board holds what the page shows. Each part of it has the revision in which it last
// changed. A reader asks for what is newer than the revision that it has seen.
type board struct {
	mu            sync.Mutex
	revision      uint64
	changed       chan struct{} // closed at the next change
	lastID        int
	conversations []*conversation                 // in the order in which they began
	questions     map[int]*question               // by the entry's id
	byRequest     map[*approval.Request]*question // the open ones
	openBytes     int                             // of them
	tasks         []Task                          // of other processes, fit to be shown
	tasksRevision uint64
}

func newBoard() board {
	return board{
		revision:  1,
		changed:   make(chan struct{}),
		questions: map[int]*question{},
		byRequest: map[*approval.Request]*question{},
	}
}

// update is one line of a stream.
type update struct {
	// Order is the ids of all conversations, the newest first.
	Order []string `json:"order"`
	// Conversations are those that have changed, with the entries that have.
	Conversations []conversationView `json:"conversations"`
	// Tasks are those of other processes, all of them, if one has changed.
	Tasks *[]Task `json:"tasks,omitzero"`
}

// since returns what is newer than a revision, the current revision, and a channel that
// is closed at the next change.
func (b *board) since(seen uint64) (update, uint64, <-chan struct{}) {
	b.mu.Lock()
	u := update{Order: []string{}, Conversations: []conversationView{}}
	for _, c := range slices.Backward(b.conversations) {
		u.Order = append(u.Order, c.ID)
		if c.revision > seen {
			u.Conversations = append(u.Conversations, c.since(seen))
		}
	}
	if tasks := b.tasks; b.tasksRevision > seen {
		u.Tasks = &tasks
	}
	now, changed := b.revision, b.changed
	b.mu.Unlock()
	for _, c := range u.Conversations {
		for i := range c.Entries { // takes long, so not under the lock
			c.Entries[i].show()
		}
	}
	return u, now, changed
}

// touch marks e as changed, or only c when e is nil, and notifies the readers.
func (b *board) touch(c *conversation, e *entry) {
	b.revision++
	c.revision = b.revision
	if e != nil {
		e.revision = b.revision
		c.weigh(e)
		b.trim(c)
	}
	b.wake()
}

// wake notifies the readers of a change.
func (b *board) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// trim removes the oldest entries of a conversation that is too long, but no open
// question.
func (b *board) trim(c *conversation) {
	for len(c.entries) > maxEntries || c.bytes > maxBytes {
		i := slices.IndexFunc(c.entries, func(e *entry) bool { return !e.open() })
		if i < 0 {
			return
		}
		c.From = max(c.From, c.entries[i].ID+1)
		delete(b.questions, c.entries[i].ID)
		c.drop(i)
	}
}

// conversation returns the conversation of a thread. Two servers may run the same
// thread; each has a conversation of its own. It makes a new one if there is none.
func (b *board) conversation(t approval.Thread) *conversation {
	i := slices.IndexFunc(b.conversations, func(c *conversation) bool { return c.thread.ID == t.ID && c.thread.Server == t.Server })
	if i >= 0 {
		b.conversations[i].reach(t)
		return b.conversations[i]
	}
	c := newConversation(t)
	for n, id := 2, c.ID; b.named(c.ID) != nil; n++ {
		c.ID = fmt.Sprintf("%s (%d)", id, n)
	}
	b.conversations = append(b.conversations, c)
	b.makeRoom()
	b.touch(c, nil)
	return c
}

// makeRoom removes conversations until they are few enough: ended ones first, then those
// without a running turn, the oldest first. It never removes the newest one or one with
// an open question.
func (b *board) makeRoom() {
	for len(b.conversations) > maxConversations {
		candidates := b.conversations[:len(b.conversations)-1]
		victim := -1
		for i, c := range candidates {
			if !c.asking() && (victim < 0 || c.rank() < candidates[victim].rank()) {
				victim = i
			}
		}
		if victim < 0 {
			return
		}
		for _, e := range candidates[victim].entries {
			delete(b.questions, e.ID)
		}
		b.conversations = slices.Delete(b.conversations, victim, victim+1)
	}
}

// add appends an entry to a conversation.
func (b *board) add(c *conversation, e *entry) *entry {
	b.lastID++
	e.ID, e.At = b.lastID, time.Now().UnixMilli()
	c.entries = append(c.entries, e)
	b.touch(c, e)
	return e
}

// stopper returns the function that ends the turn of a conversation, or nil if the page
// does not show it.
func (b *board) stopper(thread string) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.named(thread); c != nil {
		return c.thread.Stop
	}
	return nil
}

// shown returns the threads of the conversations, the newest first, and the number of open questions.
func (b *board) shown() (threads []string, open int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range slices.Backward(b.conversations) {
		threads = append(threads, c.thread.ID)
	}
	return threads, len(b.byRequest)
}

// named returns the conversation that the page shows under that id, or nil.
func (b *board) named(id string) *conversation {
	for _, c := range b.conversations {
		if c.ID == id {
			return c
		}
	}
	return nil
}
