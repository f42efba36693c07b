package turn

import (
	"context"
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

// spending is the budget of a turn that runs. The zero value has no limit.
type spending struct {
	Budget
	stop context.CancelCauseFunc // ends the turn
}

// begin starts the time of a turn that ends with ctx. A part may have passed in another process.
func (s *spending) begin(ctx context.Context, stop context.CancelCauseFunc, passed time.Duration) {
	s.stop = stop
	if s.Minutes == nil {
		return
	}
	if d := *s.Minutes * float64(time.Minute); d < math.MaxInt64 { // not centuries
		spent := &SpentError{*s.Minutes, "minute"}
		timer := time.AfterFunc(max(time.Duration(d)-passed, 1), func() { stop(spent) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
}

// counts stops a turn that has used too many tokens.
func (s *spending) counts(tokens int64) {
	if s.Tokens != nil && s.stop != nil && tokens >= *s.Tokens {
		s.stop(&SpentError{float64(*s.Tokens), "token"})
	}
}
