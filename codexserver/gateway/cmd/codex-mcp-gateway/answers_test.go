package main

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// answers are those to the requests of a user.
type answers struct {
	mu      sync.Mutex
	refused time.Time     // the first 503 since the last success, zero without one
	worst   time.Duration // the longest from a first 503 to the next success
	polled  time.Time     // the last successful poll of a task
	lost    []loss
}

// loss is a request that got no answer, or one that says that there is none.
type loss struct {
	began time.Time
	text  string
}

// note notes the answer to a request.
func (a *answers) note(began time.Time, method string, status int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil && status == http.StatusServiceUnavailable:
		if a.refused.IsZero() {
			a.refused = now
		}
	case err == nil && status == http.StatusOK:
		if !a.refused.IsZero() {
			a.worst = max(a.worst, now.Sub(a.refused))
			a.refused = time.Time{}
		}
		if method == "tasks/get" {
			a.polled = now
		}
	default:
		a.lost = append(a.lost, loss{began, fmt.Sprint(method, ": ", status, " ", err)})
	}
}

// take returns for how long the user was refused since the last call, at worst.
func (a *answers) take() (worst time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	worst, a.worst = a.worst, 0
	return worst
}

// between returns what was lost that began between two moments.
func (a *answers) between(from, to time.Time) (lost []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.lost {
		if l.began.After(from) && l.began.Before(to) {
			lost = append(lost, l.text)
		}
	}
	return lost
}

// since reports whether a poll was successful after a moment, and nothing was refused since then.
func (a *answers) since(moment time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused.IsZero() && a.polled.After(moment)
}
