package turn

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"
)

// Budget limits one turn. Nil does not.
type Budget struct {
	// Tokens is how many tokens the turn may use, and Minutes how long it may take. Nil is no limit.
	Tokens  *int64   `json:"tokens,omitzero"`
	Minutes *float64 `json:"minutes,omitzero"`
}

// SpentError is the cause of the end of a turn that has reached its budget.
type SpentError struct {
	n    float64
	unit string
}

// Error implements error.
func (e *SpentError) Error() string {
	unit := e.unit
	if e.n != 1 {
		unit += "s"
	}
	return "budget of " + strconv.FormatFloat(e.n, 'f', -1, 64) + " " + unit + " reached"
}

// spending is the budget of a turn. The zero value has no limit.
type spending struct {
	budget Budget
	ctx    context.Context         // of the turn; nil before it runs
	stop   context.CancelCauseFunc // ends ctx
	timer  *time.Timer             // nil without a limit of time
	spent  *SpentError             // what ended the turn, or nil
}

// begin starts the time of the turn, of which a part may have passed in another process.
func (s *spending) begin(passed time.Duration) {
	if s.budget.Minutes == nil || s.stop == nil {
		return
	}
	if d := *s.budget.Minutes * float64(time.Minute); d < math.MaxInt64 { // not centuries
		stop, spent := s.stop, &SpentError{*s.budget.Minutes, "minute"}
		s.timer = time.AfterFunc(max(time.Duration(d)-passed, 1), func() { stop(spent) })
	}
}

// counts stops a turn that has used too many tokens.
func (s *spending) counts(tokens int64) {
	if s.budget.Tokens != nil && s.stop != nil && tokens >= *s.budget.Tokens {
		s.stop(&SpentError{float64(*s.budget.Tokens), "token"})
	}
}

// end stops the time. Err is the end of the turn.
func (s *spending) end(err error) {
	if s.timer != nil {
		s.timer.Stop()
	}
	if err == nil || s.ctx == nil || !errors.As(context.Cause(s.ctx), &s.spent) {
		s.spent = nil
	}
}
