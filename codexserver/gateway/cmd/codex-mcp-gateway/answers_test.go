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
	refused time.Time // the first 503 since the last success, zero without one
	polled  time.Time // the last successful poll of a task
	worst   outage
	lost    []loss
}

// loss is a request that got no answer, or one that says that there is none.
type loss struct {
	began time.Time
	text  string
}

// outage is the longest time that a user was without the service, in two ways.
type outage struct {
	refused time.Duration // from the first 503 until the next success
	silent  time.Duration // from one successful poll of a task to the next
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
			a.worst.refused = max(a.worst.refused, now.Sub(a.refused))
			a.refused = time.Time{}
		}
		if method == "tasks/get" {
			if !a.polled.IsZero() {
				a.worst.silent = max(a.worst.silent, now.Sub(a.polled))
			}
			a.polled = now
		}
	default:
		a.lost = append(a.lost, loss{began, fmt.Sprint(method, ": ", status, " ", err)})
	}
}

// take returns the worst that was since the last call.
func (a *answers) take() (worst outage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	worst, a.worst = a.worst, outage{}
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
