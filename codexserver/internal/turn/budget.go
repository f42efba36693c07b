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

// begin starts the time of the turn, which ends with ctx. A part of it may have passed in another process.
func (b *Budget) begin(ctx context.Context, stop context.CancelCauseFunc, passed time.Duration) {
	if b == nil || b.Minutes == nil {
		return
	}
	if d := *b.Minutes * float64(time.Minute); d < math.MaxInt64 { // not centuries
		spent := &SpentError{*b.Minutes, "minute"}
		timer := time.AfterFunc(max(time.Duration(d)-passed, 1), func() { stop(spent) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
}

// bounds reports whether the budget has a limit of tokens.
func (b *Budget) bounds() bool { return b != nil && b.Tokens != nil }
