package model

import (
	"errors"
	"net/http"
	"slices"
	"time"
)

// busyCodes are the codes in a stream with which a provider says that it has no room now.
var busyCodes = []string{"rate_limit_exceeded", "server_is_overloaded", "server_overloaded", "overloaded_error", "slow_down"}

// busyStatus are the statuses with which it says that; 529 is none of the standard.
var busyStatus = []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, 529}

// QuotaError reports that an account has no credit, as a provider says inside a stream.
type QuotaError struct {
	// Message is the provider's message without its keys.
	Message string
}

// Error implements error.
func (e *QuotaError) Error() string { return "the provider refused the request: " + e.Message }

// Elsewhere reports whether another provider may answer the request that failed with err: at a
// limit of the account, an overload, or a key that is refused. It is false where another provider
// would be asked because of what the request holds. After is when the limit ends, 0 if unknown.
func Elsewhere(err error) (after time.Duration, ok bool) {
	if limit, ok := errors.AsType[*UsageLimitError](err); ok {
		return max(limit.ResetsIn, 0), true
	}
	if busy, ok := errors.AsType[*RetryLimitError](err); ok {
		return busy.After, slices.Contains(busyStatus, busy.Code)
	}
	if refused, ok := errors.AsType[*StatusError](err); ok {
		return 0, slices.Contains([]int{http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusTooManyRequests}, refused.Code)
	}
	if cut, ok := errors.AsType[*StreamError](err); ok {
		return cut.After, cut.Busy
	}
	_, ok = errors.AsType[*QuotaError](err)
	return 0, ok
}
