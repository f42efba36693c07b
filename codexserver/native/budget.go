package native

import (
	"fmt"
	"time"
)

// budget is what a turn may use of time, of requests to the model and of tokens, and what it has used.
type budget struct {
	limits   Limits // of every turn
	most     int64  // tokens of this turn; 0 means no limit of its own
	begun    time.Time
	requests int
	tokens   int64
}

// limitError ends a turn that reached one of its limits.
type limitError struct{ what string }

func (e *limitError) Error() string { return "the turn was stopped: " + e.what }

// request counts a request and returns an error when a limit does not allow it.
func (b *budget) request() error {
	if b.requests++; b.limits.ModelRequests > 0 && b.requests > b.limits.ModelRequests {
		return &limitError{fmt.Sprintf("it needs more than %d requests to the model", b.limits.ModelRequests)}
	}
	return b.spent()
}

// spent returns an error when the turn has used all its tokens.
func (b *budget) spent() error {
	for _, limit := range []int64{b.limits.Tokens, b.most} {
		if limit > 0 && b.tokens >= limit {
			return &limitError{fmt.Sprintf("it used %d of %d tokens", b.tokens, limit)}
		}
	}
	return nil
}
