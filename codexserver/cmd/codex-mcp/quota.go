package main

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// quota is what the account has left.
type quota struct {
	// Unknown says why the quota is not known, "" when it is.
	Unknown string `json:"unknown,omitempty"`
	// Reported is when the provider reported the limits; nil means now.
	Reported *time.Time `json:"told,omitempty"`
	// Primary and Secondary are nil when there is no such limit.
	Primary   *window `json:"primary,omitempty"`
	Secondary *window `json:"secondary,omitempty"`
	words     string  // for people
}

// window is one limit of an account.
type window struct {
	UsedPercent     float64 `json:"usedPercent"`
	WindowMinutes   *int64  `json:"windowMinutes,omitempty"`
	ResetsInSeconds *int64  `json:"resetsInSeconds,omitempty"`
}

// quotaOf asks an engine what the account has left. It sends no request to a model.
func quotaOf(ctx context.Context, e engine.Engine) *quota {
	const timeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var limits *protocol.RateLimits
	var reported time.Time
	var err error
	switch e := e.(type) {
	case *appserver.Engine:
		limits, err = e.RateLimits(ctx)
	case *native.Engine:
		limits, reported, err = e.RateLimits(ctx)
	}
	switch {
	case err != nil:
		return &quota{Unknown: err.Error()}
	case limits == nil:
		return &quota{Unknown: "no limits were reported"}
	}
	return newQuota(limits, reported)
}

// newQuota returns the present state of limits that a provider reported earlier; with a
// zero time it has just reported them. It leaves out a limit that has been reset since.
func newQuota(limits *protocol.RateLimits, reported time.Time) *quota {
	q := &quota{}
	var since time.Duration
	if !reported.IsZero() {
		q.Reported, since = &reported, time.Since(reported)
	}
	if q.words = limits.Words(since); q.words == "" {
		return &quota{Unknown: "the limits that were reported last have been reset since"}
	}
	if q.Reported != nil {
		q.words += " (reported " + reported.UTC().Format(time.RFC3339) + ")"
	}
	q.Primary, q.Secondary = remains(limits.Primary, since), remains(limits.Secondary, since)
	return q
}

// remains returns a limit some time after it was reported, nil if it has been reset since.
func remains(w *protocol.RateLimitWindow, since time.Duration) *window {
	if w == nil || (&protocol.RateLimits{Primary: w}).Words(since) == "" {
		return nil
	}
	now := window(*w)
	if now.ResetsInSeconds != nil {
		now.ResetsInSeconds = new(*now.ResetsInSeconds - int64(since.Seconds()))
	}
	return &now
}
