package model

import (
	"errors"
	"fmt"
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
	text := "exceeded retry limit, last status: " + statusLine(e.Code)
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

// StreamError reports a response that broke off, or with which the provider failed.
type StreamError struct {
	Reason string
	// After is how long the provider asks to wait, or 0.
	After time.Duration
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

// Retryable reports whether another attempt may succeed. After is how long the provider
// asks to wait before it, or 0.
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
