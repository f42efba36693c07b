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
	// Unknown says why nothing is known, "" when something is.
	Unknown string `json:"unknown,omitempty"`
	// The time of the provider's report, if it was not asked now.
	Told *time.Time `json:"told,omitempty"`
	// Primary and Secondary are nil where there is no such limit.
	Primary   *window `json:"primary,omitempty"`
	Secondary *window `json:"secondary,omitempty"`
}

// window is one limit of an account.
type window struct {
	UsedPercent     float64 `json:"usedPercent"`
	WindowMinutes   *int64  `json:"windowMinutes,omitempty"`
	ResetsInSeconds *int64  `json:"resetsInSeconds,omitempty"`
}

// quotaTimeout bounds the look at what the account has left.
const quotaTimeout = 5 * time.Second

// quotaOf asks an engine what the account has left, without a request to a model.
func quotaOf(ctx context.Context, e engine.Engine) *quota {
	ctx, cancel := context.WithTimeout(ctx, quotaTimeout)
	defer cancel()
	var limits *protocol.RateLimits
	var told time.Time
	var err error
	switch e := e.(type) {
	case *appserver.Engine:
		limits, err = e.RateLimits(ctx)
	case *native.Engine:
		limits, told, err = e.RateLimits(ctx)
	}
	switch {
	case err != nil:
		return &quota{Unknown: err.Error()}
	case limits == nil:
		return &quota{Unknown: "no limits were reported"}
	}
	return newQuota(limits, told)
}

// newQuota returns the limits as they are now, if they were reported earlier. A limit
// that has been reset since is left out.
func newQuota(limits *protocol.RateLimits, told time.Time) *quota {
	q := &quota{}
	var since int64
	if !told.IsZero() {
		q.Told, since = &told, int64(time.Since(told).Seconds())
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

// String returns the quota as a line for a person.
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
	if q.Told != nil {
		line += fmt.Sprintf(" (reported %s)", q.Told.UTC().Format(time.RFC3339))
	}
	return line
}

func (w *window) String() string {
	line := fmt.Sprintf("%g%% used", w.UsedPercent)
	if w.WindowMinutes != nil {
		line += " of " + (time.Duration(*w.WindowMinutes) * time.Minute).String()
	}
	if w.ResetsInSeconds != nil {
		line += ", resets in " + (time.Duration(*w.ResetsInSeconds) * time.Second).String()
	}
	return line
}
