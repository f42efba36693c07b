package approve_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/elicit"
)

// returning is a desk that returns an outcome.
func returning(out elicit.Outcome) *approve.Place {
	return &approve.Place{By: "desk", Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) { return out, nil }}
}

// TestOnlyWhatWasShownIsAccepted has answers that accept a lasting rule which the question did
// not show, or not from this board.
func TestOnlyWhatWasShownIsAccepted(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(b *approve.Board, r *approval.Request)
		want    elicit.Decision
	}{
		{"shown", func(b *approve.Board, r *approval.Request) { r.Question.Always = b.Offer(r) }, elicit.ApprovedAlways},
		{"offered, but not shown", func(b *approve.Board, r *approval.Request) { b.Offer(r) }, elicit.Denied},
		{"shown by another", func(_ *approve.Board, r *approval.Request) { r.Question.Always = &elicit.Always{Words: "all"} }, elicit.Denied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := approve.New(&approve.Options{Kept: rulefile.New(t.TempDir(), nil)}, nil)
			defer b.Attach(returning(elicit.Outcome{Decision: elicit.ApprovedAlways}))()
			r := lasting(t.TempDir())
			tt.prepare(b, r)
			if d := b.Decide(t.Context(), r, false); d.Decision != tt.want || (d.RuleWords != "") != (tt.want == elicit.ApprovedAlways) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestUndecidedIsNotUnsupported checks that the policy for clients that cannot be asked does not apply
// to what a place left open, or answered with a word that is no decision.
func TestUndecidedIsNotUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &approve.Options{Questions: elicit.Options{OnUnsupported: elicit.PolicyAbort, Timeout: time.Minute}}
		b := approve.New(o, nil)
		if d := b.Decide(t.Context(), request(), false); d.Decision != elicit.Abort || d.Reason != elicit.ReasonUnsupported {
			t.Errorf("nobody can be asked: %s, %s", d.Decision, d.Reason)
		}
		leave := b.Attach(returning(elicit.Outcome{Decision: "yes"}))
		if d := b.Decide(t.Context(), request(), false); d.Decision != elicit.Denied {
			t.Errorf("an unknown decision: %s, %s", d.Decision, d.Reason)
		}
		leave()
		hung := make(chan struct{})
		defer b.Attach(&approve.Place{By: approval.ByClient, Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) {
			<-hung
			return elicit.Outcome{}, nil
		}})()
		if d := b.Decide(t.Context(), request(), false); d.Decision != elicit.Denied || d.Reason != elicit.ReasonTimeout {
			t.Errorf("a place that does not return: %s, %s", d.Decision, d.Reason)
		}
		close(hung)
	})
}

// TestLateApproval has places that do not heed the limit of a question. An approval that comes after it does not count.
func TestLateApproval(t *testing.T) {
	for after, want := range map[time.Duration]elicit.Decision{59 * time.Second: elicit.Approved, time.Minute + time.Millisecond: elicit.Denied} {
		synctest.Test(t, func(t *testing.T) {
			b := approve.New(&approve.Options{Questions: elicit.Options{Timeout: time.Minute}}, nil)
			defer b.Attach(&approve.Place{By: "desk", Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) {
				time.Sleep(after)
				return elicit.Outcome{Decision: elicit.Approved}, nil
			}})()
			if d := b.Decide(t.Context(), request(), false); d.Decision != want || (d.Reason == elicit.ReasonTimeout) != (want == elicit.Denied) {
				t.Errorf("after %v: %s, %q by %s", after, d.Decision, d.Reason, d.By)
			}
		})
	}
}

// TestLeftPlaceIsNotAsked checks that a place that left is not asked, the others are, and that a
// place that comes when a question is over does not see it.
func TestLeftPlaceIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		place := func(name string) *approve.Place {
			return &approve.Place{By: approval.Decider(name), Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) {
				asked = append(asked, name)
				return elicit.Outcome{Decision: elicit.Approved}, nil
			}}
		}
		b := approve.New(&approve.Options{}, nil)
		leave := b.Attach(place("a"))
		defer b.Attach(place("b"))()
		leave()
		if d := b.Decide(t.Context(), request(), false); d.Decision != elicit.Approved || d.By != "b" {
			t.Errorf("%s by %s", d.Decision, d.By)
		}
		hung := make(chan struct{})
		gone := b.Attach(&approve.Place{By: "c", Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) {
			<-hung
			return elicit.Outcome{Decision: elicit.Denied}, nil
		}})
		b.Decide(t.Context(), request(), false) // c does not return from it
		defer b.Attach(place("late"))()
		synctest.Wait()
		if got := strings.Join(asked, " "); got != "b b" {
			t.Errorf("asked %s", got)
		}
		close(hung)
		gone()
	})
}

// TestRecordTakesAnyBytes records an answer with bytes that are not UTF-8, and a desk that
// invites a client which nobody passes on.
func TestRecordTakesAnyBytes(t *testing.T) {
	var lines servertest.Journal
	b := approve.New(&approve.Options{Record: record.To(&lines), Desk: inviterDesk{&servertest.Desk{Answer: servertest.Say(servertest.Accept)}, func() string { return "open the page" }}}, nil)
	defer b.Attach(newClient(nil, nil))()
	if d := b.Decide(t.Context(), request(), false); d.Decision != elicit.Approved {
		t.Errorf("%s", d.Decision)
	}
	b = approve.New(&approve.Options{Record: record.To(&lines)}, nil)
	defer b.Attach(returning(elicit.Outcome{Decision: elicit.Denied, Feedback: "\xff"}))()
	b.Decide(t.Context(), request(), false)
	if n := strings.Count(lines.String(), "\n"); n != 2 {
		t.Errorf("%d lines: %s", n, &lines)
	}
}
