package board_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestRelay asks by a relay whose places come and go.
func TestRelay(t *testing.T) {
	const minutes = 2 * time.Minute
	type taker struct {
		comes, leaves time.Duration // leaves 0 is never
		does          servertest.Answer
	}
	for _, tt := range []struct {
		name   string
		takers []taker
		desk   servertest.Answer
		want   string // the decision, its reason, and who made it
		after  time.Duration
	}{
		{"one is there", []taker{{0, 0, servertest.Say(servertest.Accept)}}, nil, "approved  approver", 0},
		{"one comes later", []taker{{time.Minute, 0, servertest.Say(servertest.Decline)}}, nil, "denied declined approver", time.Minute},
		{"none comes", nil, nil, "denied timeout approver", minutes},
		{"one comes too late", []taker{{2 * minutes, 0, servertest.Say(servertest.Accept)}}, nil, "denied timeout approver", minutes},
		{"one is silent", []taker{{0, 0, servertest.Never}}, nil, "denied timeout approver", minutes},
		{"one leaves, another one answers", []taker{{0, time.Second, servertest.Never}, {time.Minute, 0, servertest.Say(servertest.Accept)}}, nil, "approved  approver", time.Minute},
		{"one leaves before it answers", []taker{{0, time.Second, servertest.After(time.Minute, servertest.Accept)}}, nil, "denied timeout approver", minutes},
		{"one fails, another one answers", []taker{{0, 0, servertest.Fail}, {time.Second, 0, servertest.Say(servertest.Cancel)}}, nil, "abort cancelled approver", time.Second},
		{"one panics, another one answers", []taker{{0, 0, panics}, {time.Second, 0, servertest.Say(servertest.Accept)}}, nil, "approved  approver", time.Second},
		{"the stricter of two", []taker{{0, 0, servertest.After(time.Second, servertest.Accept)}, {0, 0, servertest.After(time.Second, servertest.Decline)}}, nil, "denied declined approver", time.Second},
		{"the desk is first", []taker{{0, 0, servertest.After(time.Minute, servertest.Accept)}}, servertest.After(time.Second, servertest.Decline), "denied declined desk", time.Second},
		{"the relay is first", []taker{{0, 0, servertest.After(time.Second, servertest.Accept)}}, servertest.After(time.Minute, servertest.Decline), "approved  approver", time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var record, log servertest.Journal
				o := &board.Options{
					Questions: elicit.Options{Timeout: minutes}, Approver: "bob",
					Record: board.NewRecord(&record), Logger: log.Logger(),
				}
				if tt.desk != nil {
					o.Desk = &servertest.Desk{Answer: tt.desk}
				}
				relay := board.NewRelay(o)
				for _, one := range tt.takers {
					go func() {
						if one.comes > 0 {
							<-time.After(one.comes)
						}
						ask := func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
							words, err := one.does(ctx)
							if err != nil && ctx.Err() == nil {
								return elicit.Outcome{}, err
							}
							if err != nil {
								return r.Question.ReadError(err, &o.Questions), nil
							}
							return r.Question.Read([]byte(words), &o.Questions), nil
						}
						leave := relay.Attach(raw{approval.ByClient, ask})
						if one.leaves > 0 {
							<-time.After(one.leaves)
							leave()
						}
					}()
				}
				synctest.Wait()
				b := board.New(o, nil)
				defer b.Attach(relay)()
				begin := time.Now()
				r := request()
				r.Thread.Principal = "ann"
				got := b.Decide(t.Context(), r)
				if s := fmt.Sprintf("%s %s %s", got.Decision, got.Reason, got.By); s != tt.want {
					t.Errorf("decided %q, want %q", s, tt.want)
				}
				if took := time.Since(begin); took != tt.after {
					t.Errorf("decided after %v, want %v", took, tt.after)
				}
				line := record.String()
				if !strings.Contains(line, `"principal":"ann"`) || strings.Contains(line, `"approver":"bob"`) != (got.By == approval.ByApprover) {
					t.Errorf("the record: %s", line)
				}
				<-time.After(3 * minutes) // until every taker has come
			})
		})
	}
}

// TestRelayIsWithdrawn withdraws a question from its place when the turn ends.
func TestRelayIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &board.Options{}
		relay := board.NewRelay(o)
		withdrawn := make(chan struct{})
		relay.Attach(raw{approval.ByClient, func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
			<-ctx.Done()
			close(withdrawn)
			return r.Question.ReadError(ctx.Err(), &o.Questions), nil
		}})
		b := board.New(o, nil)
		defer b.Attach(relay)()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := b.Decide(ctx, request()); got.Decision != elicit.Abort {
			t.Errorf("decided %+v", got)
		}
		<-withdrawn
	})
}
