package tools

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// budget limits one turn. Nil does not.
type budget struct {
	Tokens  *int64   `json:"tokens,omitzero"`
	Minutes *float64 `json:"minutes,omitzero"`
}

// check reports a budget that is not valid.
func (b *budget) check() error {
	switch {
	case b == nil:
		return nil
	case b.Tokens == nil && b.Minutes == nil:
		return errors.New("argument /budget: want tokens, minutes or both")
	case b.Tokens != nil && *b.Tokens < 1:
		return errors.New("argument /budget/tokens: want at least 1")
	case b.Minutes != nil && *b.Minutes <= 0:
		return errors.New("argument /budget/minutes: want more than 0")
	}
	return nil
}

// tokens returns how many tokens the turn may use, 0 without a limit.
func (b *budget) tokens() int64 {
	if b == nil || b.Tokens == nil {
		return 0
	}
	return *b.Tokens
}

// spentError is the cause of the end of a turn that has reached its budget.
type spentError struct {
	n    float64
	unit string
}

func (e *spentError) Error() string {
	unit := e.unit
	if e.n != 1 {
		unit += "s"
	}
	return "budget of " + strconv.FormatFloat(e.n, 'f', -1, 64) + " " + unit + " reached"
}

// words returns the text of a turn that the budget stopped: the reason and the agent's last message.
func (e *spentError) words(last string) string {
	words := "The turn was stopped: " + e.Error() + ". What it has changed stays; codex-reply continues."
	if last = strings.TrimSpace(last); last != "" {
		words += " The last message:\n\n" + last
	}
	return words
}

// spending stops a turn that reaches its budget.
type spending struct {
	thread.NoQuestions
	budget *budget
	log    *turn.Turn
	stop   context.CancelCauseFunc // of the turn
}

// begin starts the time of the turn, of which a part may have passed in another process.
func (s *spending) begin(passed time.Duration) (end func()) {
	if s.budget.Minutes == nil {
		return func() {}
	}
	d := *s.budget.Minutes * float64(time.Minute)
	if d >= math.MaxInt64 { // centuries
		return func() {}
	}
	timer := time.AfterFunc(max(time.Duration(d)-passed, 1), func() { s.stop(&spentError{*s.budget.Minutes, "minute"}) })
	return func() { timer.Stop() }
}

// Event implements [thread.Observer].
func (s *spending) Event(e thread.Event) {
	if _, ok := e.Msg.(protocol.TokenCount); ok && s.budget.Tokens != nil && s.log.Tokens() >= *s.budget.Tokens {
		s.stop(&spentError{float64(*s.budget.Tokens), "token"})
	}
}
