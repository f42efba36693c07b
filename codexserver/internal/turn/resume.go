package turn

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json/jsontext"
)

// Order is what a caller asks of a turn besides its input.
type Order struct {
	Resume
	// Thread is the id of the thread, which sets it.
	Thread string
	// Most is how many bytes of JSON the answer has at most. 0 is no limit.
	Most int
	// Shows is true if codex-show has what a result leaves out.
	Shows bool
	// CheckTime is how long a check or a set-up may take, by default ten minutes.
	CheckTime time.Duration
	// Commit commits what is in the worktree, in a bounded time; the subject is the first line of the message. It returns
	// the last commit of the branch, "" for none since it began, and what the caller should know. It is nil for turns that
	// commit nothing.
	Commit func(subject string) (commit string, remarks []string)
	// Read takes the answer of a review, or why the turn failed or was aborted, into the result, and returns what is shown in
	// place of the answer, and an error unless the review has ended well. It is nil for other turns.
	Read func(answer string, did *protocol.TurnResult, failed error) (string, error)
}

// Resume is what continues a turn, in the process that began it and in another one: a turn of a task or in the
// background can outlive its process.
type Resume struct {
	// Key is that of [protocol.TurnInput], "" if no other process continues the turn.
	Key string `json:"key"`
	// Began is when another process began the turn, and Used what the thread had used then.
	Began time.Time            `json:"began,omitzero"`
	Used  *protocol.TokenUsage `json:"used,omitzero"`
	// Budget bounds the turn. Nil does not.
	Budget *Budget `json:",embed"`
	// Setup is what comes before the turn; nil for nothing, and when it is done.
	Setup *Setup `json:"setup,omitzero"`
	// Checks are the lines that say, in this order, whether the turn is done, and Tries how often one has failed, which
	// [Turn.Checked] counts.
	Checks []string `json:"checks,omitzero"`
	Tries  int      `json:"tries,omitzero"`
	// Schema is that of the answer, nil for none.
	Schema jsontext.Value `json:"schema,omitzero"`
	// Attempts are all attempts, if the turn is the first of several.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Worktree is the one that was made for the thread, and Subject the line that the commit of the turn's work begins
	// with there.
	Worktree *protocol.Worktree `json:"worktree,omitzero"`
	Subject  string             `json:"subject,omitzero"`
}

// Resume returns what another process needs to continue the turn, or nil if none does, such
// as for a turn that a person has aborted.
func (t *Turn) Resume() *Resume {
	if t.attempts != nil {
		return t.resumeAll()
	}
	return t.resume()
}

// resume is Resume of this turn alone.
func (t *Turn) resume() *Resume {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.Order.Resume
	if r.Began, r.Used = t.time.first, t.tokens.given; r.Key == "" || t.stopped || t.answer.stopped {
		return nil
	}
	return &r
}
