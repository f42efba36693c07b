package model

import (
	"strings"
	"testing"
	"time"
)

// TestBounds has texts that are as long as they may be, and longer ones.
func TestBounds(t *testing.T) {
	const full = "prompt is too long"
	for _, tt := range []struct {
		status int
		before int
		want   bool
	}{{400, 2000 - len(full), true}, {400, 2001 - len(full), false}, {0, 0, true}, {413, 0, true}, {422, 0, true}, {500, 0, true}, {404, 0, false}, {429, 0, false}, {503, 0, false}} {
		if got := isOverflow(tt.status, strings.Repeat("x", tt.before)+full, refusal{}); got != tt.want {
			t.Errorf("status %d, after %d bytes: %t", tt.status, tt.before, got)
		}
	}
	for text, want := range map[string]time.Duration{
		"Try again in 1.5s": 1500 * time.Millisecond, "try again in 20 seconds": 20 * time.Second, "try again in 7ms.": 7 * time.Millisecond, "try again in 1 minute": time.Minute,
		"try again in 119s": 119 * time.Second, "try again in 3 minutes": 3 * time.Minute, "try again in 5 hours": 0, "try again": 0,
	} {
		if got := askedDelay(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for _, err := range []error{&ProviderError{Again: true, After: time.Hour}, &ProviderError{Status: 503, Again: true, After: time.Hour}} {
		if wait, _, ok := new(Client).Again(err, 0, time.Now()); wait != 2*time.Minute || !ok {
			t.Errorf("%v: the pause is %v, %t", err, wait, ok)
		}
	}
	for n, want := range map[int]time.Duration{0: 200 * time.Millisecond, 1: 400 * time.Millisecond, 8: 51200 * time.Millisecond, 9: time.Minute, 100: time.Minute} {
		if got := backoff(200*time.Millisecond, n); got < want*9/10 || got > want*11/10 {
			t.Errorf("after %d attempts: %v, want %v", n, got, want)
		}
	}
}
