package approve_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func TestDecide(t *testing.T) {
	const minutes = 2 * time.Minute
	for _, tt := range []struct {
		name    string
		client  servertest.Answer // nil for a client that cannot be asked
		desk    servertest.Answer // nil for no desk
		want    string            // the decision, its reason, and who made it
		remarks string
		after   time.Duration
		options elicit.Options // with a time-out of two minutes
	}{
		{"client approves", servertest.Say(servertest.Accept), nil, "approved  client", "", 0, elicit.Options{}},
		{"client approves for the session", servertest.Say(servertest.ForSession), nil, "approved_for_session  client", "", 0, elicit.Options{}},
		{"client declines", servertest.Say(servertest.Decline), nil, "denied declined client", "", 0, elicit.Options{}},
		{"client cancels", servertest.Say(servertest.Cancel), nil, "abort cancelled client", "", 0, elicit.Options{}},
		{"client says something else", servertest.Say(`{"action":"yes"}`), nil, "denied not_understood client", "", 0, elicit.Options{}},
		{"client fails", servertest.Fail, nil, "denied client_error nobody", "could not show", 0, elicit.Options{}},
		{"client is silent", servertest.Never, nil, "denied timeout nobody", "No answer within 120 s", minutes, elicit.Options{}},
		{"client cannot be asked", nil, nil, "denied unsupported nobody", "cannot show", 0, elicit.Options{}},

		{"desk alone approves", nil, servertest.After(time.Minute, servertest.Accept), "approved  desk", "", time.Minute, elicit.Options{}},
		{"desk alone approves for the session", nil, servertest.Say(servertest.ForSession), "approved_for_session  desk", "", 0, elicit.Options{}},
		{"desk alone declines", nil, servertest.Say(servertest.Decline), "denied declined desk", "", 0, elicit.Options{}},
		{"desk alone cancels", nil, servertest.Say(servertest.Cancel), "abort cancelled desk", "", 0, elicit.Options{}},
		{"desk alone says something else", nil, servertest.Say(`{"action":"yes"}`), "denied not_understood desk", "", 0, elicit.Options{}},
		{"desk alone sends no JSON", nil, servertest.Say(`yes`), "denied not_understood desk", "", 0, elicit.Options{}},
		{"desk alone is silent", nil, servertest.Never, "denied timeout nobody", "No answer within 120 s", minutes, elicit.Options{}},
		{"desk alone fails", nil, servertest.Fail, "denied unsupported nobody", "The desk could not show the question: broken. This MCP client cannot show", 0, elicit.Options{}},
		{"desk alone panics", nil, panics, "denied unsupported nobody", "it panicked", 0, elicit.Options{}},

		{"client first", servertest.Say(servertest.Accept), servertest.Never, "approved  client", "", 0, elicit.Options{}},
		{"client first, declined", servertest.Say(servertest.Decline), servertest.After(time.Second, servertest.Accept), "denied declined client", "", 0, elicit.Options{}},
		{"client first, cancelled", servertest.Say(servertest.Cancel), servertest.After(time.Second, servertest.Accept), "abort cancelled client", "", 0, elicit.Options{}},
		{"client first, desk fails", servertest.After(time.Second, servertest.Accept), servertest.Fail, "approved  client", "", time.Second, elicit.Options{}},
		{"desk first, declined", servertest.After(time.Minute, servertest.Accept), servertest.Say(servertest.Decline), "denied declined desk", "", 0, elicit.Options{}},
		{"desk first, approved", servertest.Never, servertest.Say(servertest.Accept), "approved  desk", "", 0, elicit.Options{}},
		{"client fails, desk approves", servertest.Fail, servertest.After(time.Second, servertest.Accept), "approved  desk", "", time.Second, elicit.Options{}},
		{"client fails, desk is silent", servertest.Fail, servertest.Never, "denied timeout nobody", "No answer within 120 s", minutes, elicit.Options{}},
		{"client fails after the desk", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", servertest.ErrBroken
		}, servertest.Say(servertest.Accept), "approved  desk", "", 0, elicit.Options{}},
		{"both silent", servertest.Never, servertest.Never, "denied timeout ", "No answer within 120 s", minutes, elicit.Options{}},
		{"both fail", servertest.Fail, servertest.Fail, "denied client_error nobody", "The desk could not show the question: broken. The client could not show", 0, elicit.Options{}},

		{"nobody answers, fail-call", servertest.Never, servertest.Never, "abort timeout ", "No answer", minutes, elicit.Options{OnTimeout: "fail-call"}},
		{"nobody answers, abort", nil, servertest.Never, "abort timeout nobody", "No answer", minutes, elicit.Options{OnTimeout: "abort"}},
		{"no client, fail-call, the desk answers", nil, servertest.Say(servertest.Accept), "approved  desk", "", 0, elicit.Options{OnUnsupported: "fail-call"}},
		{"no client, fail-call, the desk fails", nil, servertest.Fail, "abort unsupported nobody", "cannot show", 0, elicit.Options{OnUnsupported: "fail-call"}},
		{"a client that fails, fail-call, the desk answers", servertest.Fail, servertest.After(time.Second, servertest.Accept), "approved  desk", "", time.Second, elicit.Options{OnError: "fail-call"}},
		{"a client that fails, fail-call, the desk fails", servertest.Fail, servertest.Fail, "abort client_error nobody", "could not show", 0, elicit.Options{OnError: "fail-call"}},
		{"nobody chose at the desk", servertest.Never, servertest.Say(servertest.Cancel), "denied cancelled desk", "", 0, elicit.Options{OnCancel: "deny"}},
		{"nobody chose in the client", servertest.Say(servertest.Cancel), servertest.After(time.Second, servertest.Accept), "denied cancelled client", "", 0, elicit.Options{OnCancel: "deny"}},
		{"for ever, answered after a day", nil, servertest.After(24*time.Hour, servertest.Accept), "approved  desk", "", 24 * time.Hour, elicit.Options{Timeout: -1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines, log servertest.Journal
				tt.options.Timeout = cmp.Or(tt.options.Timeout, minutes)
				o := &approve.Options{Questions: tt.options, Record: record.To(&lines), Logger: log.Logger()}
				d := &servertest.Desk{Answer: tt.desk}
				if tt.desk != nil {
					o.Desk = d
				}
				b := approve.New(o, nil)
				defer b.Attach(newClient(tt.client, &o.Questions))()
				begin := time.Now()
				got := b.Decide(t.Context(), request(), false)
				if s := fmt.Sprintf("%s %s %s", got.Decision, got.Reason, got.By); !strings.HasPrefix(s, tt.want) {
					t.Errorf("decided %q, want %q", s, tt.want)
				}
				if took := time.Since(begin); took != tt.after {
					t.Errorf("decided after %v, want %v", took, tt.after)
				}
				words := strings.Join(got.Remarks, " ")
				if (words == "") != (tt.remarks == "") || !strings.Contains(words, tt.remarks) {
					t.Errorf("remarks %q, want %q", words, tt.remarks)
				}
				if n := strings.Count(lines.String(), "\n"); n != 1 || !strings.Contains(lines.String(), `"by":"`+string(got.By)+`"`) {
					t.Errorf("%d lines of record: %s", n, &lines)
				}
				if n := strings.Count(log.String(), "msg=approval "); n != 1 {
					t.Errorf("logged %d times: %s", n, &log)
				}
				if (tt.desk != nil) != (len(d.Decisions()) == 1) {
					t.Errorf("the desk received %d decisions", len(d.Decisions()))
				}
			})
		})
	}
}

// TestStricterAnswerCounts has one place answer when it learns that another one has, which is the
// latest moment of an answer that still counts.
func TestStricterAnswerCounts(t *testing.T) {
	for _, tt := range []struct {
		first, second string
		want          elicit.Decision
		by            approval.Decider
	}{
		{servertest.Accept, servertest.Decline, elicit.Denied, "second"},
		{servertest.ForSession, servertest.Accept, elicit.Approved, "second"},
		{servertest.Accept, servertest.Cancel, elicit.Abort, "second"},
		{servertest.Decline, servertest.Accept, elicit.Denied, "first"},
		{servertest.Cancel, servertest.Decline, elicit.Abort, "first"},
		{servertest.Accept, servertest.ForSession, elicit.Approved, "first"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := approve.New(&approve.Options{}, nil)
			say := func(by approval.Decider, words string, when func(context.Context)) *approve.Place {
				return &approve.Place{By: by, Ask: func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
					when(ctx)
					return r.Question.Read([]byte(words), nil), nil
				}}
			}
			defer b.Attach(say("first", tt.first, func(context.Context) {}))()
			defer b.Attach(say("second", tt.second, func(ctx context.Context) { <-ctx.Done() }))()
			if got := b.Decide(t.Context(), request(), false); got.Decision != tt.want || got.By != tt.by {
				t.Errorf("%s, then %s: decided %q by %q", tt.first, tt.second, got.Decision, got.By)
			}
		})
	}
}

// TestElsewhere answers a question at one place, and reads what the others are told.
func TestElsewhere(t *testing.T) {
	page := &servertest.Desk{Called: approval.ByPage, Answer: servertest.Never}
	desk := &servertest.Desk{Answer: servertest.Never}
	for _, tt := range []struct {
		desk         approval.Desk
		by           approval.Decider
		answer, want string
	}{
		{page, approval.ByPage, servertest.Accept, "approved, on the approvals page"},
		{page, approval.ByPage, servertest.ForSession, "approved for the session, on the approvals page"},
		{page, approval.ByPage, servertest.Decline, "denied, on the approvals page"},
		{page, approval.ByPage, servertest.Cancel, "denied, and the turn stopped, on the approvals page"},
		{page, approval.ByClient, servertest.Accept, "approved, by another client"},
		{desk, "desk", servertest.Accept, "approved, on the desk"},
		{nil, approval.ByClient, `{"action":"accept","content":{"decision":"approved_always"}}`, "approved, always, by another client"},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := &approve.Options{Desk: tt.desk}
			told := make(chan string, 1)
			asked := &approve.Place{By: approval.ByClient, Ask: func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
				<-ctx.Done()
				told <- context.Cause(ctx).Error()
				return r.Question.ReadError(ctx.Err(), nil), nil
			}}
			b := approve.New(o, nil)
			for _, place := range []*approve.Place{asked, &approve.Place{By: tt.by, Ask: func(_ context.Context, r *approval.Request) (elicit.Outcome, error) {
				return r.Question.Read([]byte(tt.answer), nil), nil
			}}} {
				defer b.Attach(place)()
			}
			r := request()
			r.Question.Always = &elicit.Always{Words: "git init"}
			b.Decide(t.Context(), r, false)
			if got, want := <-told, "the question was answered elsewhere: "+tt.want; got != want {
				t.Errorf("told %q, want %q", got, want)
			}
		})
	}
}

// TestTimeout checks how long a question stays open.
func TestTimeout(t *testing.T) {
	const limit = 5 * time.Minute
	for _, tt := range []struct{ limit, patience, want time.Duration }{
		{limit, time.Hour, limit},
		{0, 0, elicit.DefaultTimeout},
		{0, time.Hour, time.Hour}, // as long as the request says
		{-1, 0, 0},                // as long as the turn
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Hour) // of synctest
			b := approve.New(&approve.Options{Questions: elicit.Options{Timeout: tt.limit}}, nil)
			defer b.Attach(newClient(servertest.Never, &elicit.Options{Timeout: -1}))()
			r := request()
			r.Timeout = tt.patience
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			begin := time.Now()
			got := b.Decide(ctx, r, false)
			took := time.Since(begin)
			if tt.want == 0 && (took != 24*time.Hour || got.Reason != elicit.ReasonInterrupted) || tt.want != 0 && (took != tt.want || got.Reason != elicit.ReasonTimeout) {
				t.Errorf("of %v: %q after %v", tt.limit, got.Reason, took)
			}
		})
	}
}

// TestPlacesComeAndGo asks a place that is attached while a question is open, and does not wait for one that leaves.
func TestPlacesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := approve.New(&approve.Options{}, nil)
		leave := b.Attach(newClient(servertest.Never, nil))
		decided := make(chan approval.Decision)
		go func() { decided <- b.Decide(t.Context(), request(), false) }()
		synctest.Wait()
		defer b.Attach(newClient(servertest.After(time.Minute, servertest.Accept), nil))()
		leave()
		leave() // twice does no harm
		begin := time.Now()
		if got := <-decided; got.Decision != elicit.Approved || time.Since(begin) != time.Minute {
			t.Errorf("decided %q after %v", got.Decision, time.Since(begin))
		}
	})
}

// TestPlaceAttachedAtTheEnd attaches a place while the last one fails. The new place may or
// may not be asked, but the question always ends.
func TestPlaceAttachedAtTheEnd(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			b := approve.New(&approve.Options{}, nil)
			defer b.Attach(newClient(nil, nil))()
			go func() { b.Attach(newClient(servertest.Say(servertest.Accept), nil)) }()
			if got := b.Decide(t.Context(), request(), false); got.Decision != elicit.Approved && got.Decision != elicit.Denied {
				t.Errorf("decided %q", got.Decision)
			}
		})
	}
}

// TestPlaceThatDoesNotReturn checks that a place that continues after its question does not delay the turn.
func TestPlaceThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log servertest.Journal
		b := approve.New(&approve.Options{Logger: log.Logger()}, nil)
		release := make(chan struct{})
		defer b.Attach(&approve.Place{By: "stuck", Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) {
			<-release
			return elicit.Outcome{Decision: elicit.Approved}, nil
		}})()
		defer b.Attach(newClient(servertest.Say(servertest.Decline), nil))()
		begin := time.Now()
		if got := b.Decide(t.Context(), request(), false); got.Decision != elicit.Denied || time.Since(begin) > time.Second {
			t.Errorf("decided %q after %v", got.Decision, time.Since(begin))
		}
		if !strings.Contains(log.String(), "does not return") {
			t.Errorf("logged %s", &log)
		}
		close(release)
	})
}

func TestInvitation(t *testing.T) {
	invites := func() string { return "come here" }
	for _, tt := range []struct {
		name         string
		client, desk servertest.Answer
		invites      func() string
		comes        bool
		want         int
	}{
		{"client cannot be asked", nil, servertest.After(time.Second, servertest.Accept), invites, false, 1},
		{"client fails", servertest.Fail, servertest.After(time.Second, servertest.Accept), invites, false, 1},
		{"client answers", servertest.Say(servertest.Accept), servertest.Never, invites, false, 0},
		{"desk fails", servertest.After(time.Second, servertest.Accept), servertest.Fail, invites, false, 0},
		{"somebody is there", nil, servertest.After(time.Second, servertest.Accept), func() string { return "" }, false, 0},
		{"the desk panics", nil, servertest.After(time.Second, servertest.Accept), func() string { panic("a fault") }, false, 0},
		{"somebody may come, and asks for it", nil, servertest.After(time.Second, servertest.Accept), invites, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				b := approve.New(&approve.Options{Desk: inviterDesk{&servertest.Desk{Answer: tt.desk}, tt.invites}}, func(string, string) { sent++ })
				defer b.Attach(newClient(tt.client, nil))()
				b.Decide(t.Context(), request(), tt.comes)
				if sent != tt.want {
					t.Errorf("%d invitations, want %d", sent, tt.want)
				}
			})
		})
	}
}

// TestPanics checks that a panic of foreign code does not affect the process, and approves nothing.
func TestPanics(t *testing.T) {
	var log servertest.Journal
	boom := func() { panic("a fault") }
	b := approve.New(&approve.Options{
		Desk:   &servertest.Desk{Answer: servertest.Say(servertest.Accept), OnDecided: boom},
		Logger: log.Logger(),
	}, nil)
	if got := b.Decide(t.Context(), request(), false); got.Decision != elicit.Approved {
		t.Errorf("decided %q", got.Decision)
	}
	b = approve.New(&approve.Options{
		Desk:   &servertest.Desk{Answer: servertest.Say(servertest.Accept)},
		Record: record.To(brokenWriter{boom}),
		Logger: log.Logger(),
	}, nil)
	if got := b.Decide(t.Context(), request(), false); got.Decision != elicit.Denied {
		t.Errorf("without a record: decided %q", got.Decision)
	}
	b = approve.New(&approve.Options{Logger: log.Logger(), Rules: approval.Rules{Decide: func(context.Context, *approval.Request) (elicit.Outcome, bool) {
		panic("a fault")
	}}}, nil)
	if got := b.Decide(t.Context(), request(), false); got.Decision != elicit.Denied || got.By != approval.ByRule || got.Feedback == "" {
		t.Errorf("decided %q by %q: %q", got.Decision, got.By, got.Feedback)
	}
	for _, in := range []string{"Desk.Decided", "Record", "Rules.Decide"} {
		if !strings.Contains(log.String(), "in="+in) {
			t.Errorf("the panic in %s was not logged: %s", in, &log)
		}
	}
}

// brokenWriter is a writer whose writes fail.
type brokenWriter struct{ boom func() }

func (w brokenWriter) Write([]byte) (int, error) {
	if w.boom != nil {
		w.boom()
	}
	return 0, servertest.ErrBroken
}

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

// TestComes has questions for which somebody may come or not. A place leaves or fails, and after an hour, unless
// the question is decided, a client comes that approves.
func TestComes(t *testing.T) {
	gone := newClient(func(context.Context) (string, error) { return "", jsonrpc.ErrClosed }, nil)
	unreadable := newClient(servertest.Say("{}"), nil)
	broken := &approve.Place{By: approval.ByClient, Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) { panic("a fault") }}
	refuses := newClient(func(context.Context) (string, error) { return "", &jsonrpc.Error{Code: 1, Message: "no"} }, nil)
	leaves := newClient(servertest.Never, nil)
	pageOnly := func() *approve.Place {
		client := approve.NewClients(context.Background(), setting.Asking{Where: setting.WherePage}).Client("x")
		return &approve.Place{Client: client, Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) {
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
