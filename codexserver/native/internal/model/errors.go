package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// ProviderError reports what a provider said in the place of an answer, or that an answer broke off.
type ProviderError struct {
	// Status is that of the answer: 200 for a page, 0 for an error inside a stream.
	Status int
	// Words are the provider's, without its keys: the sentences of its answer, or the beginning of an answer that has
	// none, and the plan at a limit of the account.
	Words string
	// Hint is what the user can do, or "".
	Hint string
	// After is how long the provider asks to wait, or until when the account is at its limit. 0 is unknown.
	After time.Duration
	// Again is true if another attempt may succeed.
	Again bool
	// Elsewhere is true if another provider may answer: at a limit of the account, without room, or without
	// a key that is accepted. It is false where another one would be asked because of what the request holds.
	Elsewhere bool
	// Limit is true if the account has reached its limit.
	Limit bool
}

// broken returns the error for an answer that broke off.
func broken(reason string) *ProviderError { return &ProviderError{Words: reason, Again: true} }

// Error implements error.
func (e *ProviderError) Error() (text string) {
	switch {
	case e.Limit:
		text = "the account's usage limit is reached"
		if e.Words != "" {
			text += fmt.Sprintf(" (plan %s)", e.Words)
		}
		if e.After == 0 {
			return text + "; try again later"
		}
		return text + fmt.Sprintf("; try again in %v", e.After.Round(time.Minute))
	case e.Status == 0 && e.Again:
		text = "stream disconnected before completion: " + e.Words
	case e.Status == 0:
		text = "the provider refused the request: " + e.Words
	case e.Again:
		text = "exceeded retry limit, last status: " + e.answer()
	case e.Status == http.StatusOK:
		text = "the answer is " + e.Words
	default:
		text = fmt.Sprintf("unexpected status %s: %s", statusLine(e.Status), e.Words)
	}
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// answer returns the status and what the provider said.
func (e *ProviderError) answer() string {
	if e.Words == "" {
		return statusLine(e.Status)
	}
	return statusLine(e.Status) + ": " + e.Words
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
	var said *ProviderError
	var lost *ConnectError
	switch {
	case errors.As(err, &said) && !said.Again:
		return 0, "", false
	case said != nil && said.Status == 0:
		most = orDefault(c.Provider.StreamMaxRetries, 5)
		wait = max(min(said.After, maxRetryAfter), backoff(200*time.Millisecond, n))
		say = fmt.Sprintf("stream error: %v; retrying %d/%d in %v…", err, n+1, most, wait.Round(time.Millisecond))
	case said != nil: // it needs time
		wait = max(min(said.After, maxRetryAfter), backoff(500*time.Millisecond, n))
		// The time first, because a line for a person may cut the rest.
		say = fmt.Sprintf("asking again in %v: the provider answered %s", wait.Round(time.Millisecond), said.answer())
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
	if said != nil && said.Elsewhere && c.MaxWait > 0 && said.After > c.MaxWait {
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
	return strings.TrimSpace(fmt.Sprint(code, " ", http.StatusText(code)))
}
