package servertest

import (
	"context"
	"errors"
	"time"
)

// Answer answers a question with an ElicitResult, as JSON.
type Answer func(ctx context.Context) (string, error)

// Results of elicitation/create.
const (
	Accept     = `{"action":"accept"}`
	ForSession = `{"action":"accept","content":{"decision":"approved_for_session"}}`
	Decline    = `{"action":"decline"}`
	Cancel     = `{"action":"cancel"}`
)

// ErrBroken is the error of [Fail].
var ErrBroken = errors.New("broken")

// Say returns an answer that is given at once.
func Say(result string) Answer { return func(context.Context) (string, error) { return result, nil } }

// After returns an answer that is given after d.
func After(d time.Duration, result string) Answer { return Delay(d, Say(result)) }

// Delay returns an answer that takes d longer.
func Delay(d time.Duration, a Answer) Answer {
	if d == 0 {
		return a // the race detector of Go 1.26 crashes at times on time.After(0) in a bubble
	}
	return func(ctx context.Context) (string, error) {
		if err := Wait(ctx, d); err != nil {
			return "", err
		}
		return a(ctx)
	}
}

// Fail is an answer that cannot be given.
func Fail(context.Context) (string, error) { return "", ErrBroken }

// Never is an answer that does not come.
func Never(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// Wait waits for d. It returns the cause of the end of ctx if that comes first.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
