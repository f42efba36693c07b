package approve_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestComes has questions for which somebody may come or not. A place leaves or fails, and after an hour, unless
// the question is decided, a client comes that approves.
func TestComes(t *testing.T) {
	gone := newClient(func(context.Context) (string, error) { return "", jsonrpc.ErrClosed }, nil)
	unreadable := newClient(servertest.Say("{}"), nil)
	broken := &approve.Place{By: approval.ByClient, Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) { panic("a fault") }}
	refuses := newClient(func(context.Context) (string, error) { return "", &jsonrpc.Error{Code: 1, Message: "no"} }, nil)
	leaves := newClient(servertest.Never, nil)
	pageOnly := func() *approve.Place {
		host := approve.NewHosts(setting.Asking{Where: setting.WherePage}).Host("x")
		return &approve.Place{Host: host, Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) {
			t.Error("a client was asked, although only the page asks")
			return elicit.Outcome{}, nil
		}}
	}
	const hour, day = time.Hour, 24 * time.Hour
	for _, tt := range []struct {
		name   string
		comes  bool
		place  *approve.Place
		late   bool // nobody comes within the time of the question
		limit  time.Duration
		want   elicit.Decision
		reason elicit.Reason
		after  time.Duration
	}{
		{"nobody, for good", false, nil, false, -1, elicit.Denied, elicit.ReasonUnsupported, 0},
		{"nobody yet", true, nil, false, -1, elicit.Approved, "", hour},
		{"nobody in time", true, nil, false, time.Minute, elicit.Denied, elicit.ReasonTimeout, time.Minute},
		{"nobody for a day", true, nil, true, -1, elicit.Denied, elicit.ReasonTimeout, day},
		{"cannot be asked", true, newClient(nil, nil), false, -1, elicit.Approved, "", hour},
		{"cannot be asked, for good", false, newClient(nil, nil), false, -1, elicit.Denied, elicit.ReasonUnsupported, 0},
		{"only the page asks", true, pageOnly(), false, -1, elicit.Approved, "", hour},
		{"only the page asks, for good", false, pageOnly(), false, -1, elicit.Denied, elicit.ReasonUnsupported, 0},
		{"the connection ends", true, gone, false, -1, elicit.Approved, "", hour},
		{"the connection ends, for good", false, gone, false, -1, elicit.Abort, elicit.ReasonPeerGone, 0},
		{"the place leaves", true, leaves, false, -1, elicit.Approved, "", hour},
		{"the place leaves, for good", false, leaves, false, -1, elicit.Abort, elicit.ReasonInterrupted, time.Minute},
		{"cannot be read", true, unreadable, false, -1, elicit.Denied, elicit.ReasonNotUnderstood, 0},
		{"panics", true, broken, false, -1, elicit.Denied, elicit.ReasonUnsupported, 0},
		{"an error", true, refuses, false, -1, elicit.Denied, elicit.ReasonClientError, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := approve.New(&approve.Options{Questions: elicit.Options{Timeout: tt.limit}}, nil)
				leave := func() {}
				if tt.place != nil {
					leave = b.Attach(tt.place)
				}
				time.AfterFunc(time.Minute, leave)
				if !tt.late {
					time.AfterFunc(hour, func() { b.Attach(newClient(servertest.Say(servertest.Accept), nil)) })
				}
				start := time.Now()
				d := b.Decide(t.Context(), request(), tt.comes)
				if after := time.Since(start); d.Decision != tt.want || d.Reason != tt.reason || after != tt.after {
					t.Errorf("%s, %q after %v", d.Decision, d.Reason, after)
				}
				time.Sleep(2 * day)
			})
		})
	}
}
