package page

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxConversations = 32
	maxOpen          = 64      // questions
	maxDecided       = 100     // questions whose decision is kept
	maxQuestion      = 4 << 20 // bytes of one
	maxFiles         = 2000    // of one; more make a browser slow
	maxOpenBytes     = 32 << 20
)

// A board holds what the page shows. Each part of it has the revision in which it last
// changed. A reader asks for what is newer than the revision that it has seen.
type board struct {
	mu            sync.Mutex
	revision      uint64
	changed       chan struct{}                   // closed at the next change
	lastID        int                             // of a conversation or a question
	conversations []*conversation                 // in the order in which they began
	questions     []*question                     // oldest first
	byRequest     map[*approval.Request]*question // the open ones
	openBytes     int                             // of them
}

func newBoard() board {
	return board{revision: 1, changed: make(chan struct{}), byRequest: map[*approval.Request]*question{}}
}

// A conversation is what the page shows of a thread besides its questions. What happened in it is in the
// thread's own log.
type conversation struct {
	// ID is a number: two servers may run the same thread.
	ID int `json:"id"`
	// Task is the last message of the user.
	Task string `json:"task"`
	// State is "running" during a turn, "" between turns, and "closed" at the end.
	State string `json:"state"`
	// Note is what the page has to say about it, or "".
	Note string `json:"note,omitzero"`
	// Log is the last lines of the log. It is read when the conversation is sent.
	Log string `json:"log"`
	// Now is what a running turn does now, as far as it is known. It is read with the log.
	Now string `json:"now,omitzero"`

	thread   approval.Thread // as it was named last
	revision uint64
}

const (
	stateRunning = "running"
	stateClosed  = "closed"
)

// A question is open from Ask to Decided.
type question struct {
	asked
	conversation *conversation
	size         int                  // of the view while it is open
	answered     chan json.RawMessage // buffered; its sender has set State before
	revision     uint64
}

// end is how a question ended, as far as the page knows.
type end struct {
	// State is "open", "answered" or "withdrawn" until the decision is known, and
	// then "decided".
	State string `json:"state"`
	// Decision is the decision once State is "decided".
	Decision elicit.Decision `json:"decision,omitzero"`
	// By names who decided.
	By approval.Decider `json:"by,omitzero"`
	// Reason is why the decision is not a plain approval.
	Reason elicit.Reason `json:"reason,omitzero"`
	// Rule says what the rule allows that was accepted with the decision.
	Rule string `json:"rule,omitzero"`
	// Feedback is the text that the agent receives.
	Feedback string `json:"feedback,omitzero"`
}

const (
	stateOpen      = "open"
	stateAnswered  = "answered"
	stateWithdrawn = "withdrawn"
	stateDecided   = "decided"
)

var (
	errTooMany = errors.New("page: too many open questions")
	errTooLong = errors.New("page: the question is too long to be shown")
)

// update is one line of a stream.
type update struct {
	// Order is the ids of all conversations, the newest first.
	Order []int `json:"order"`
	// Conversations are those that have changed.
	Conversations []conversation `json:"conversations"`
	// Questions are those that have changed.
	Questions []asked `json:"questions"`
}

// asked is a question of an update.
type asked struct {
	// ID grows from question to question.
	ID int `json:"id"`
	// At is a Unix time in ms.
	At int64 `json:"at"`
	// Conversation is the id of the one that asks.
	Conversation int `json:"conversation"`
	// Question is replaced when it changes, since readers share it.
	Question *questionView `json:"question"`
}

// since returns what is newer than a revision, and with running the conversations whose turns run, the current
// revision, and a channel that is closed at the next change.
func (b *board) since(seen uint64, running bool) (update, uint64, <-chan struct{}) {
	b.mu.Lock()
	u := update{Order: []int{}, Conversations: []conversation{}, Questions: []asked{}}
	for _, c := range slices.Backward(b.conversations) {
		u.Order = append(u.Order, c.ID)
		if c.revision > seen || running && c.State == stateRunning {
			u.Conversations = append(u.Conversations, *c)
		}
	}
	for _, q := range b.questions {
		if q.revision > seen {
			u.Questions = append(u.Questions, q.asked)
		}
	}
	now, changed := b.revision, b.changed
	b.mu.Unlock()
	for i := range u.Conversations { // takes long, so not under the lock
		c := &u.Conversations[i]
		c.Task = plain.OneLine(c.Task, 0)
		if c.thread.Log != nil {
			c.Log = elicit.ShowText(c.thread.Log())
		}
		if c.State == stateRunning && c.thread.Now != nil {
			c.Now = plain.OneLine(c.thread.Now(), 0)
		}
	}
	return u, now, changed
}

// touch gives a new revision to what has changed, and notifies the readers.
func (b *board) touch(of *uint64) {
	b.revision++
	*of = b.revision
	close(b.changed)
	b.changed = make(chan struct{})
}

// conversation returns the conversation of a thread. Two servers may run the same
// thread; each has a conversation of its own. It makes a new one if there is none.
func (b *board) conversation(t approval.Thread) *conversation {
	i := slices.IndexFunc(b.conversations,
		func(c *conversation) bool { return c.thread.ID == t.ID && c.thread.Server == t.Server })
	if i >= 0 {
		b.conversations[i].thread = t
		return b.conversations[i]
	}
	b.lastID++
	c := &conversation{ID: b.lastID, thread: t}
	b.conversations = append(b.conversations, c)
	b.makeRoom()
	b.touch(&c.revision)
	return c
}

// makeRoom removes conversations until they are few enough: ended ones first, then those
// without a running turn, the oldest first. It never removes the newest one or one with
// an open question.
func (b *board) makeRoom() {
	asking := map[*conversation]bool{b.conversations[len(b.conversations)-1]: true}
	for _, q := range b.byRequest {
		asking[q.conversation] = true
	}
	for _, state := range []string{stateClosed, "", stateRunning} {
		over := len(b.conversations) - maxConversations
		b.conversations = slices.DeleteFunc(b.conversations, func(c *conversation) bool {
			if over <= 0 || c.State != state || asking[c] {
				return false
			}
			over--
			return true
		})
	}
}

// stop interrupts the turn of a conversation. It returns false if the page does not show it.
func (b *board) stop(id int) bool {
	b.mu.Lock()
	i := slices.IndexFunc(b.conversations, func(c *conversation) bool { return c.ID == id })
	var stop func()
	if i >= 0 {
		stop = b.conversations[i].thread.Stop
	}
	b.mu.Unlock()
	if stop != nil {
		stop()
	}
	return i >= 0
}

// open returns the number of open questions.
func (b *board) open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.byRequest)
}

// event follows the state of a conversation. Its log has what happened.
func (b *board) event(t approval.Thread, m protocol.EventMsg) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.conversation(t)
	switch m := m.(type) {
	case protocol.AgentMessageDelta, protocol.AgentReasoningDelta, protocol.ExecCommandOutputDelta, protocol.TokenCount:
		return // the log does not have them, or they can wait for the next pulse
	case protocol.UserMessage:
		if m.Kind == "" || m.Kind == protocol.UserPlain {
			c.Note = ""
			c.Task, c.State = utf8text.Brief(m.Message, 2000), stateRunning
		}
	case protocol.TaskStarted:
		c.State = stateRunning
	case protocol.TaskComplete, protocol.TurnAborted:
		c.State = ""
	case protocol.ShutdownComplete:
		c.State = stateClosed
	case protocol.SessionConfigured:
		if c.State == stateClosed { // it was resumed
			c.State = ""
		}
	}
	b.touch(&c.revision)
}

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
	switch {
	case size > maxQuestion, len(view.Files) > maxFiles, b.openBytes+size > maxOpenBytes:
		c := b.conversation(r.Thread)
		c.Note = "A question is too long to be shown here whole. Only the client can answer it."
		b.touch(&c.revision)
		return nil, errTooLong
	case len(b.byRequest) >= maxOpen:
		return nil, errTooMany
	}
	c := b.conversation(r.Thread)
	b.lastID++
	q := &question{asked: asked{b.lastID, time.Now().UnixMilli(), c.ID, view}, conversation: c, size: size,
		answered: make(chan json.RawMessage, 1)}
	b.openBytes += size
	b.questions = append(b.questions, q)
	b.byRequest[r] = q
	b.touch(&q.revision)
	return q, nil
}

// answer passes an answer to the Ask that waits for it. If the question is no longer
// open, it returns how it ended instead. It returns false if it does not know the
// question.
func (b *board) answer(id int, raw json.RawMessage) (*end, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.questions, func(q *question) bool { return q.ID == id })
	if i < 0 {
		return nil, false
	}
	q := b.questions[i]
	if how := q.Question.end; how.State != stateOpen {
		return &how, true
	}
	b.finish(q, end{State: stateAnswered})
	q.answered <- raw
	return nil, true
}

// withdraw takes a question back and returns cause. If it has just been answered, it
// returns the answer.
func (b *board) withdraw(q *question, cause error) (json.RawMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case raw := <-q.answered:
		return raw, nil
	default:
	}
	if q.Question.State == stateOpen {
		b.finish(q, end{State: stateWithdrawn})
	}
	return nil, cause
}

// decided shows how a question ended that the page was asked.
func (b *board) decided(r *approval.Request, how end) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.byRequest[r]
	if q == nil {
		return
	}
	delete(b.byRequest, r)
	b.openBytes -= q.size
	b.finish(q, how)
	over := len(b.questions) - len(b.byRequest) - maxDecided
	b.questions = slices.DeleteFunc(b.questions, func(q *question) bool {
		if over <= 0 || q.Question.State != stateDecided {
			return false
		}
		over--
		return true
	})
}

// finish changes the state of a question. The browser that shows it has the rest.
func (b *board) finish(q *question, how end) {
	q.Question = &questionView{end: how}
	b.touch(&q.revision)
}
