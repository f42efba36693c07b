package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// StatusError reports an HTTP status that does not change with another attempt, or 200 with a page.
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
	if e.Code == http.StatusOK {
		b.WriteString("the answer is " + e.Body)
	} else {
		fmt.Fprintf(&b, "unexpected status %s: %s", statusLine(e.Code), e.Body)
	}
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

// Again reports whether another attempt at a request that failed with err is worth it, how long to
// wait before it, and what to say to the user meanwhile, "" for nothing. It waits as long as the
// provider asks, two minutes at most, and longer with each attempt. n counts the attempts before this
// one, the first of which began then.
//
// Until the provider has answered once, a connection that fails is tried twice at most: what is wrong
// is probably the configuration. After that it is probably the network, which may come back.
func (c *Client) Again(err error, n int, began time.Time) (wait time.Duration, say string, ok bool) {
	most := orDefault(c.Provider.RequestMaxRetries, 4)
	var cut *StreamError
	var busy *RetryLimitError
	var lost *ConnectError
	switch {
	case errors.As(err, &cut):
		most = orDefault(c.Provider.StreamMaxRetries, 5)
		wait = max(min(cut.After, maxRetryAfter), backoff(200*time.Millisecond, n))
		say = fmt.Sprintf("stream error: %v; retrying %d/%d in %v…", cut, n+1, most, wait.Round(time.Millisecond))
	case errors.As(err, &busy): // it needs time
		wait = max(min(busy.After, maxRetryAfter), backoff(500*time.Millisecond, n))
		// The time first, because a line for a person may cut the rest.
		say = fmt.Sprintf("asking again in %v: the provider answered %s", wait.Round(time.Millisecond), busy.answer())
	case errors.As(err, &lost) && c.answered.Load():
		wait = backoff(400*time.Millisecond, 2*n)
		say = "asking again for half a minute: " + lost.Error()
	case lost != nil:
		wait, most = backoff(200*time.Millisecond, n), min(most, 1)
		if lost.lasting() || time.Since(began) > soon {
			return 0, "", false
		}
	default:
		return 0, "", false
	}
	if after, other := Elsewhere(err); other && c.MaxWait > 0 && after > c.MaxWait {
		return 0, "", false
	}
	return wait, say, int64(n) < most
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
