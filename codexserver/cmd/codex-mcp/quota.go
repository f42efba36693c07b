package main

import (
	"context"
	"fmt"
	"strings"
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
}

// window is one limit of an account.
type window struct {
	UsedPercent     float64 `json:"usedPercent"`
	WindowMinutes   *int64  `json:"windowMinutes,omitempty"`
	ResetsInSeconds *int64  `json:"resetsInSeconds,omitempty"`
}

// quotaTimeout bounds quotaOf.
const quotaTimeout = 5 * time.Second

// quotaOf asks an engine what the account has left. It sends no request to a model.
func quotaOf(ctx context.Context, e engine.Engine) *quota {
	ctx, cancel := context.WithTimeout(ctx, quotaTimeout)
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
	var since int64
	if !reported.IsZero() {
		q.Reported, since = &reported, int64(time.Since(reported).Seconds())
	}
	of := func(w *protocol.RateLimitWindow) *window {
		if w == nil {
			return nil
		}
		now := &window{UsedPercent: w.UsedPercent, WindowMinutes: w.WindowMinutes}
		switch left := w.ResetsInSeconds; {
		case left == nil:
		case since > 0 && *left <= since:
			return nil
		default:
			now.ResetsInSeconds = new(*left - since)
		}
		return now
	}
	q.Primary, q.Secondary = of(limits.Primary), of(limits.Secondary)
	if q.Primary == nil && q.Secondary == nil {
		return &quota{Unknown: "the limits that were reported last have been reset since"}
	}
	return q
}

// String returns the quota as one line for users.
func (q *quota) String() string {
	if q.Unknown != "" {
		return "unknown: " + q.Unknown
	}
	var parts []string
	for _, w := range []*window{q.Primary, q.Secondary} {
		if w != nil {
			parts = append(parts, w.String())
		}
	}
	line := strings.Join(parts, "; ")
	if q.Reported != nil {
		line += fmt.Sprintf(" (reported %s)", q.Reported.UTC().Format(time.RFC3339))
	}
	return line
}

func (w *window) String() string {
	return (&protocol.RateLimits{Primary: (*protocol.RateLimitWindow)(w)}).Words(0)
}
