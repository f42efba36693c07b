package model

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// StatusError is an HTTP answer that will not get better by asking again.
type StatusError struct {
	Code int
	// Body is the beginning of the answer, without the provider's keys.
	Body string
	// Hint says what the user may do about it, "" without one.
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

// RetryLimitError is a request that was refused as often as it may be.
type RetryLimitError struct {
	Code int
	// Message is what the provider said, without its keys; "" when it said nothing.
	Message string
	// After is how long the provider asks to wait, 0 when it does not say.
	After time.Duration
}

// Error implements error.
func (e *RetryLimitError) Error() string {
	text := "exceeded retry limit, last status: " + statusLine(e.Code)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// ConnectError is a request that got no answer.
type ConnectError struct {
	// URL is without its query, which may hold a key.
	URL string
	Err error
}

// Error implements error.
func (e *ConnectError) Error() string {
	return fmt.Sprintf("error sending request for url (%s): %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// StreamError is a response that broke off or that the provider gave up.
type StreamError struct {
	Reason string
	// After is how long the provider asks to wait, 0 when it does not say.
	After time.Duration
}

// Error implements error.
func (e *StreamError) Error() string { return "stream disconnected before completion: " + e.Reason }

// UsageLimitError is an account whose limit is used up.
type UsageLimitError struct {
	// Plan is the account's, "" when unknown.
	Plan string
	// ResetsIn is 0 when unknown.
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

// ErrContextWindow says that the history is too long for the model.
var ErrContextWindow = errors.New("the conversation is longer than the model's context window")

// LimitError is a response that grew past a limit of ours.
type LimitError struct {
	// What names the limit and its value.
	What string
}

// Error implements error.
func (e *LimitError) Error() string { return "the model's response was stopped: " + e.What }

// Retryable reports whether another attempt may succeed, and how long the provider asks
// to wait before it (0 = it does not say).
func Retryable(err error) (after time.Duration, ok bool) {
	var stream *StreamError
	var refused *RetryLimitError
	var connect *ConnectError
	switch {
	case errors.As(err, &stream):
		return stream.After, true
	case errors.As(err, &refused):
		return refused.After, true
	case errors.As(err, &connect):
		return 0, true
	}
	return 0, false
}

func statusLine(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("%d %s", code, text)
	}
	return fmt.Sprint(code)
}
