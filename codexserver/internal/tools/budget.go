package tools

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// budget limits one turn.
type budget struct {
	Tokens  *int64   `json:"tokens,omitzero"`
	Minutes *float64 `json:"minutes,omitzero"`
}

// check reports a budget that is not valid. Nil means no budget.
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

// time returns how long the turn may take, or 0 for no limit.
func (b *budget) time() time.Duration {
	if b == nil || b.Minutes == nil {
		return 0
	}
	d := *b.Minutes * float64(time.Minute)
	if d >= math.MaxInt64 {
		return 0 // centuries
	}
	return max(time.Duration(d), 1)
}

// tokens returns how many tokens the turn may use, 0 without a limit.
func (b *budget) tokens() int64 {
	if b == nil || b.Tokens == nil {
		return 0
	}
	return *b.Tokens
}

// blind reports whether the budget limits tokens, but the engine did not count any.
func (b *budget) blind(tokens int64) bool { return b != nil && b.Tokens != nil && tokens == 0 }

// spentError is the cause of the end of a turn that has reached its budget.
type spentError struct{ what string }

func (e *spentError) Error() string { return "budget of " + e.what + " reached" }

// stopped returns the text of a turn that a budget stopped: the reason and the agent's last
// message.
func stopped(why error, last string) string {
	words := "The turn was stopped: " + why.Error() + ". What it has changed stays; codex-reply continues."
	if last = strings.TrimSpace(last); last != "" {
		words += " The last message:\n\n" + last
	}
	return words
}

// meter stops a turn that reaches its budget.
type meter struct {
	stop  context.CancelCauseFunc // of the turn
	timer *time.Timer             // nil without a limit of time, and before the turn begins
}

// begin starts the time of the turn, of which a part may have passed in another process.
func (m *meter) begin(b *budget, passed time.Duration) {
	if d := b.time(); d > 0 {
		words := plural(*b.Minutes, "minute")
		m.timer = time.AfterFunc(max(d-passed, 1), func() { m.stop(&spentError{words}) })
	}
}

// used stops a turn that has used too many tokens.
func (m *meter) used(b *budget, tokens int64) {
	if b != nil && b.Tokens != nil && tokens >= *b.Tokens {
		m.stop(&spentError{plural(float64(*b.Tokens), "token")})
	}
}

// end stops the timer.
func (m *meter) end() {
	if m.timer != nil {
		m.timer.Stop()
	}
}

func plural(n float64, unit string) string {
	if n != 1 {
		unit += "s"
	}
	return strconv.FormatFloat(n, 'f', -1, 64) + " " + unit
}
