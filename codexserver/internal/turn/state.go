package turn

import (
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// moment is what a turn does now.
type moment struct {
	show.Now
	call      string              // the command that has the output
	questions []*approval.Request // the open ones
	asked     time.Time           // since when there is an open one
	unseen    bool                // a question opened that no caller has seen
	where     string              // the open questions can be answered, if not by the client
	changed   chan struct{}       // see [Turn.Changed]; nil if nobody waits
	first     *Turn               // of several attempts, which changes with this one; nil for it and for other turns
}

// do sets what the turn does, and the command that it runs, or "".
func (m *moment) do(words, call string) {
	m.Now, m.call = show.Now{Doing: words, Since: time.Now()}, call
	if call != "" {
		m.Output = &show.Output{}
	}
}

// change wakes those who wait for news.
func (m *moment) change() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
	if m.first != nil { // whose lock is taken after that of another attempt, never before
		m.first.mu.Lock()
		defer m.first.mu.Unlock()
		m.first.now.change()
	}
}

// State is what a turn does at one moment.
type State struct {
	Status protocol.TurnStatus
	// Now is what the turn does.
	show.Now
	// Question is the subject of the oldest open question, or "", and Asked since when there is one.
	Question string
	Asked    time.Time
	// Where says where it can be answered, if a client has answered by itself; else "".
	Where string
}

// State returns what the turn does. A turn that is queued runs, too; its status has ended when there is a result. The first
// of several attempts says what all do.
func (t *Turn) State() State {
	if t.attempts != nil && !t.isOver() {
		return t.together()
	}
	return t.state()
}

// state is State of this turn alone.
func (t *Turn) state() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := State{Status: protocol.StatusRunning, Now: t.now.Now}
	s.Output = s.Output.Clone()
	if len(t.now.questions) > 0 {
		s.Status, s.Question = protocol.StatusWaiting, plain.Brief(t.now.questions[0].Subject.Name())
		s.Where, s.Asked = t.now.where, t.now.asked
	}
	if t.over() {
		s.Status = t.status
	}
	return s
}

// Line returns the state as a line for a person: what the turn does, for how long, and what the command that it runs
// has printed, or the oldest open question.
func (s State) Line() string {
	shown := s.Now
	if s.Question != "" {
		shown = show.Now{Doing: s.Words(), Since: s.Asked}
	}
	return shown.Line(time.Now(), 0)
}

// Words returns the part of the line that stays the same until something changes, without words of a command's output.
func (s State) Words() string {
	if s.Question == "" {
		return s.Doing
	}
	words := "waiting for approval of " + s.Question
	if s.Where != "" {
		words += ", " + s.Where
	}
	return words
}

// IsOpen reports whether the question is an open one of the turn, or of one of its attempts.
func (t *Turn) IsOpen(r *approval.Request) bool {
	return slices.ContainsFunc(t.all(), func(attempt *Turn) bool {
		attempt.mu.Lock()
		defer attempt.mu.Unlock()
		return slices.Contains(attempt.now.questions, r)
	})
}

// Changed returns a channel that is closed when the turn starts, when a question opens or is decided, and when a
// command begins, or a command or a patch ends.
func (t *Turn) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now.changed == nil {
		t.now.changed = make(chan struct{})
	}
	return t.now.changed
}

// Asks reports whether there is an open question that no caller has seen.
func (t *Turn) Asks() bool {
	return slices.ContainsFunc(t.all(), func(attempt *Turn) bool {
		attempt.mu.Lock()
		defer attempt.mu.Unlock()
		return attempt.now.unseen && len(attempt.now.questions) > 0
	})
}

// Stop records that a person ends the turn, so that no other process continues it.
func (t *Turn) Stop() {
	for _, attempt := range t.all() {
		attempt.mu.Lock()
		attempt.stopped = true
		attempt.now.change()
		attempt.mu.Unlock()
	}
}

// Seen records that a caller has seen the open questions.
func (t *Turn) Seen() {
	for _, attempt := range t.all() {
		attempt.mu.Lock()
		attempt.now.unseen = false
		attempt.mu.Unlock()
	}
}
