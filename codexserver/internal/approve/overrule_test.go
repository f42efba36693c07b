package approve_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestOverrule asks whether a denial is overruled. Only a person overrules it, no rule does, and nothing that a client does by
// itself ends the turn. The record has it as an event of its own.
func TestOverrule(t *testing.T) {
	const instant = `denied by nobody; The client "x" accepted 5 ms after the question. That did not count.`
	for _, tt := range []struct {
		name string
		says elicit.Outcome
		took time.Duration
		want string
		log  string
	}{
		{"a person approves", elicit.Outcome{Decision: elicit.Approved}, time.Second, "approved by client", "overruled  client"},
		{"a program approves", elicit.Outcome{Decision: elicit.Approved}, 5 * time.Millisecond, instant, "decided denied nobody"},
		{"a person declines", elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined}, time.Second, "denied by client", "decided denied client"},
		{"a person ends the turn", elicit.Outcome{Decision: elicit.Abort, Reason: elicit.ReasonCancelled}, time.Second, "abort by client", "decided abort client"},
		{"a program cancels", elicit.Outcome{Decision: elicit.Abort, Reason: elicit.ReasonCancelled}, 5 * time.Millisecond, "denied by client", "decided denied client"},
		{"the client cannot be asked", elicit.ReadError(elicit.ErrUnsupported, &elicit.Options{OnUnsupported: elicit.PolicyFailCall}), 0, "denied by nobody", ""},
		{"the client has gone", elicit.ReadError(context.Canceled, nil), time.Second, "denied by nobody", ""},
		{"no answer in time", elicit.ReadError(context.DeadlineExceeded, &elicit.Options{OnTimeout: elicit.PolicyAbort}), time.Second,
			"denied by nobody; No answer within 600 s, so the command was not run.", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				rules := approval.Rules{Decide: func(context.Context, *approval.Request) (elicit.Outcome, bool) {
					return elicit.Outcome{Decision: elicit.Approved}, true
				}}
				b := approve.New(&approve.Options{Rules: rules, Record: record.To(&log)}, nil)
				hosts := approve.NewClients(context.Background(), setting.Asking{})
				defer b.Attach(&approve.Place{Client: hosts.Client("x"), Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) {
					time.Sleep(tt.took)
					tt.says.Took = tt.took
					return tt.says, nil
				}})()
				r := approval.Overrule{Refused: protocol.Refused{Command: []string{"rm", "x"}, Reason: "denied"}}
				d := b.Decide(t.Context(), &approval.Request{Subject: r, Question: r.Question("", "")}, false)
				must.Equal(t, "decision", tt.want, strings.Join(append([]string{fmt.Sprintf("%s by %s", d.Decision, d.By)}, d.Remarks...), "; "))
				got := ""
				if log.Len() > 0 {
					l := must.Get(record.Parse(log.Bytes()))(t)
					got = fmt.Sprintf("%s %s %s", l.Event, l.Decision, l.By)
				}
				must.Equal(t, "log", tt.log, got)
			})
		})
	}
	b := approve.New(&approve.Options{Record: record.To(brokenWriter{})}, nil)
	defer b.Attach(returning(elicit.Outcome{Decision: elicit.Approved, Took: time.Second}))()
	if d := b.Decide(t.Context(), &approval.Request{Subject: approval.Overrule{}, Question: &elicit.Question{}}, false); d.Decision != elicit.Denied {
		t.Errorf("%s, although it was not recorded", d.Decision)
	}
}
