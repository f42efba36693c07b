package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

const (
	maxConversations = 32
	maxEntries       = 500
	maxBytes         = 1 << 20 // of a conversation's entries other than open questions
	maxText          = 64 << 10
	maxOpen          = 64
	maxQuestion      = 4 << 20
	maxFiles         = 2000 // of a question, for a browser is slow with more
	maxOpenBytes     = 32 << 20
)

// A board is what the page shows. Everything on it has the revision in which it
// last changed, so that a reader gets what is newer than what it has seen,
// however late it comes.
type board struct {
	stall         time.Duration // how long a model may be silent; 0 is for ever
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

func newBoard(stall time.Duration) board {
	return board{
		stall:     stall,
		revision:  1,
		changed:   make(chan struct{}),
		questions: map[int]*question{},
		byRequest: map[*approval.Request]*question{},
	}
}

// A question is open from Ask to Decided, and known for as long as its entry is
// kept.
type question struct {
	conversation *conversation
	entry        *entry
	request      *approval.Request
	answered     chan json.RawMessage // of size 1; who fills it has set State
}

// end is how a question ended, as far as it is known.
type end struct {
	// State is "open", "answered" (and the decision is about to be known),
	// "withdrawn" (likewise) or "decided".
	State string `json:"state"`
	// Decision is the server's word for it.
	Decision elicit.Decision `json:"decision,omitzero"`
	// By is "rule", "client" or "desk".
	By approval.Decider `json:"by,omitzero"`
	// Reason is package elicit's word for why it is not a plain approval.
	Reason elicit.Reason `json:"reason,omitzero"`
	// Feedback is the text that the agent receives.
	Feedback string `json:"feedback,omitzero"`
}

const (
	stateOpen      = "open"
	stateAnswered  = "answered"
	stateWithdrawn = "withdrawn"
	stateDecided   = "decided"
)

// update is one line of a stream.
type update struct {
	// Order is the ids of all conversations, the newest first.
	Order []string `json:"order"`
	// Conversations are those that have changed, with the entries that have.
	Conversations []conversationView `json:"conversations"`
	// Tasks are those of other processes, all of them, if one has changed.
	Tasks *[]Task `json:"tasks,omitzero"`
}

// since returns what is newer than a revision, the present revision, and what
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
		for i := range c.Entries {
			c.Entries[i].show()
		}
	}
	return u, now, changed
}

// touch makes readers see that e has changed, or c alone when e is nil.
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

// trim forgets the oldest entries of a conversation that is too long.
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

// conversation returns the one of a thread that a server runs. It makes a new one
// when there is none.
func (b *board) conversation(t approval.Thread) *conversation {
	i := slices.IndexFunc(b.conversations, func(c *conversation) bool { return c.thread == t.ID && c.server == t.Server })
	if i >= 0 {
		b.conversations[i].stop = t.Stop
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

// makeRoom forgets the oldest conversations: those that have ended first, then
// those without a turn under way, never one with an open question.
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

// add puts an entry at the end of a conversation.
func (b *board) add(c *conversation, e *entry) *entry {
	b.lastID++
	e.ID, e.At = b.lastID, time.Now().UnixMilli()
	c.entries = append(c.entries, e)
	b.touch(c, e)
	return e
}

var (
	errTooMany = errors.New("page: too many open questions")
	errTooLong = errors.New("page: the question is too long to be shown")
)

// ask puts a question on the board.
func (b *board) ask(ctx context.Context, r *approval.Request) (*question, error) {
	view := viewQuestion(r)
	view.end = end{State: stateOpen}
	if deadline, ok := ctx.Deadline(); ok {
		view.Deadline = deadline.UnixMilli()
	}
	size := view.size()
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.conversation(r.Thread)
	switch {
	case size > maxQuestion, len(view.Files) > maxFiles, b.openBytes+size > maxOpenBytes:
		b.add(c, &entry{Kind: kindError, body: text("A question is too long to be shown here whole. Only the client can answer it.")})
		return nil, errTooLong
	case len(b.byRequest) >= maxOpen:
		return nil, errTooMany
	}
	if view.Kind == "patch" {
		c.folder = view.Cwd
	}
	q := &question{conversation: c, request: r, answered: make(chan json.RawMessage, 1)}
	b.openBytes += size
	q.entry = &entry{Kind: kindQuestion, Question: view}
	b.add(c, q.entry)
	b.questions[q.entry.ID] = q
	b.byRequest[r] = q
	c.clock.Asked()
	b.listen(c)
	return q, nil
}

// answer hands an answer to the waiting question. It returns how the question ended when
// it is no longer open.
func (b *board) answer(id int, raw json.RawMessage) (*end, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.questions[id]
	if q == nil {
		return nil, false
	}
	if how := q.entry.Question.end; how.State != stateOpen {
		return &how, true
	}
	b.finish(q, end{State: stateAnswered})
	q.answered <- raw
	return nil, true
}

// withdraw takes a question back, unless it has just been answered.
func (b *board) withdraw(q *question, cause error) (json.RawMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case raw := <-q.answered:
		return raw, nil
	default:
	}
	if q.entry.Question.State == stateOpen {
		b.finish(q, end{State: stateWithdrawn})
	}
	return nil, cause
}

// decided shows how a question ended, also one that was never asked here.
func (b *board) decided(r *approval.Request, how end) {
	b.mu.Lock()
	q := b.byRequest[r]
	if q != nil {
		delete(b.byRequest, r)
		b.finish(q, how)
		q.conversation.clock.Decided()
		b.listen(q.conversation)
	}
	b.mu.Unlock()
	if q != nil {
		return
	}
	view := viewQuestion(r).brief()
	view.end = how
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(b.conversation(r.Thread), &entry{Kind: kindQuestion, Question: view})
}

// finish changes the state of a question that stays on the board.
func (b *board) finish(q *question, how end) {
	view := *q.entry.Question
	if how.State == stateDecided {
		b.openBytes -= view.size()
		view = *view.brief()
	}
	view.end = how
	q.entry.Question = &view
	b.touch(q.conversation, q.entry)
}

// listen brings up to date from when on the model of a conversation is stuck.
func (b *board) listen(c *conversation) {
	at := int64(0)
	if since := c.clock.Since(); b.stall > 0 && !since.IsZero() {
		// By the second: what a model says comes in many pieces.
		at = since.Add(b.stall + time.Second).Truncate(time.Second).UnixMilli()
	}
	if at != c.StuckAt {
		c.StuckAt = at
		b.touch(c, nil)
	}
}

// stopper returns what ends the turn of a conversation; nil without one.
func (b *board) stopper(thread string) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.named(thread); c != nil {
		return c.stop
	}
	return nil
}

// named returns the conversation that the page knows by that id; nil without one.
func (b *board) named(id string) *conversation {
	for _, c := range b.conversations {
		if c.ID == id {
			return c
		}
	}
	return nil
}
