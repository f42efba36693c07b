package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// StatusError reports an HTTP status that does not change with another attempt.
type StatusError struct {
	Code int
	// Body is the beginning of the answer, without the provider's keys.
	Body string
	// Hint is what the user can do, or "".
	Hint string
}

// Error implements error.
func (e *StatusError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "unexpected status %s: %s", statusLine(e.Code), e.Body)
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

// RetryLimitError reports a request that was refused and has no retries left.
type RetryLimitError struct {
	Code int
	// Message is the provider's message without its keys, or "".
	Message string
	// After is how long the provider asks to wait, or 0.
	After time.Duration
}

// Error implements error.
func (e *RetryLimitError) Error() string {
	return "exceeded retry limit, last status: " + e.answer()
}

// answer returns what the provider said.
func (e *RetryLimitError) answer() string {
	text := statusLine(e.Code)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// ConnectError reports a request without an answer.
type ConnectError struct {
	// URL is the URL without its query, which may contain a key.
	URL string
	Err error
}

// Error implements error.
func (e *ConnectError) Error() string {
	return fmt.Sprintf("error sending request for url (%s): %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// AbsentError reports that no program listens at the address of a provider on this machine, which
// has not answered before. Another attempt would end in the same way until somebody starts it.
type AbsentError struct {
	// URL is the URL without its query, which may contain a key.
	URL string
}

// Error implements error.
func (e *AbsentError) Error() string {
	return fmt.Sprintf("no model server listens at %s: start it, or set the base_url of the provider to its address", e.URL)
}

// StreamError reports a response that broke off, or with which the provider failed.
type StreamError struct {
	Reason string
	// After is how long the provider asks to wait, or 0.
	After time.Duration
	// Busy is true if the provider had no room for the request.
	Busy bool
}

// Error implements error.
func (e *StreamError) Error() string { return "stream disconnected before completion: " + e.Reason }

// UsageLimitError reports that the account has reached its limit.
type UsageLimitError struct {
	// Plan is the account's plan, or "" if unknown.
	Plan string
	// ResetsIn is when the limit ends, or 0 if unknown.
	ResetsIn time.Duration
}

// Error implements error.
func (e *UsageLimitError) Error() string {
	text := "the account's usage limit is reached"
	if e.Plan != "" {
		text += fmt.Sprintf(" (plan %s)", e.Plan)
	}
	if e.ResetsIn > 0 {
		return text + fmt.Sprintf("; try again in %v", e.ResetsIn.Round(time.Minute))
	}
	return text + "; try again later"
}

// ErrContextWindow reports that the history is too long for the model. Errors that wrap it
// have the provider's words.
var ErrContextWindow = errors.New("the conversation is longer than the model's context window")

// LimitError reports a response that exceeded one of our limits.
type LimitError struct {
	// What is the limit and its value.
	What string
}

// Error implements error.
func (e *LimitError) Error() string { return "the model's response was stopped: " + e.What }

// maxRetryAfter is the longest wait that a provider can request.
const maxRetryAfter = 2 * time.Minute

// Pause reports whether another attempt may succeed after err, and how long to wait before it:
// as long as the provider asks, two minutes at most, and longer with each attempt. n counts the attempts before
// this one.
func Pause(err error, n int) (wait time.Duration, ok bool) {
	const broken, refused = 200 * time.Millisecond, 500 * time.Millisecond // a busy provider needs time
	var cut *StreamError
	var status *RetryLimitError
	var connect *ConnectError
	switch {
	case errors.As(err, &cut):
		return max(min(cut.After, maxRetryAfter), backoff(broken, n)), true
	case errors.As(err, &status):
		return max(min(status.After, maxRetryAfter), backoff(refused, n)), true
	case errors.As(err, &connect):
		return backoff(broken, n), true
	}
	return 0, false
}

// maxBackoff is the longest wait that a provider has not asked for.
const maxBackoff = time.Minute

// backoff returns least, doubled for each attempt before, plus or minus 10 percent.
func backoff(least time.Duration, n int) time.Duration {
	base := min(least<<min(n, 16), maxBackoff)
	return time.Duration(float64(base) * (0.9 + 0.2*rand.Float64()))
}

func statusLine(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("%d %s", code, text)
	}
	return fmt.Sprint(code)
}
