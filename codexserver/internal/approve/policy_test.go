package approve_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestDeskAndPolicies checks that the policies for undecided questions also apply with a
// desk.
func TestDeskAndPolicies(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options elicit.Options
		client  servertest.Answer
		desk    servertest.Answer
		want    string // the decision, and who made it
	}{
		{"nobody answers, fail-call", elicit.Options{OnTimeout: "fail-call"}, servertest.Never, servertest.Never, "abort by"},
		{"nobody answers, abort", elicit.Options{OnTimeout: "abort"}, nil, servertest.Never, "abort by nobody"},
		{"no client, fail-call, the desk answers", elicit.Options{OnUnsupported: "fail-call"}, nil, servertest.Say(servertest.Accept), "approved by desk"},
		{"no client, fail-call, the desk fails", elicit.Options{OnUnsupported: "fail-call"}, nil, servertest.Fail, "abort by nobody"},
		{"a client that servertest.Fail, fail-call, the desk answers", elicit.Options{OnError: "fail-call"}, servertest.Fail, servertest.After(time.Second, servertest.Accept), "approved by desk"},
		{"a client that servertest.Fail, fail-call, the desk fails", elicit.Options{OnError: "fail-call"}, servertest.Fail, servertest.Fail, "abort by nobody"},
		{"nobody chose at the desk", elicit.Options{OnCancel: "deny"}, servertest.Never, servertest.Say(servertest.Cancel), "denied by desk"},
		{"nobody chose in the client", elicit.Options{OnCancel: "deny"}, servertest.Say(servertest.Cancel), servertest.After(time.Second, servertest.Accept), "denied by client"},
		{"for ever, answered after a day", elicit.Options{Timeout: -1}, nil, servertest.After(24*time.Hour, servertest.Accept), "approved by desk"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &servertest.Desk{Answer: tt.desk}
				b := approve.New(&approve.Options{Questions: tt.options, Desk: d}, nil)
				defer b.Attach(newClient(tt.client, &tt.options))()
				got := b.Decide(t.Context(), request(), false)
				if words := string(got.Decision) + " by " + string(got.By); !strings.HasPrefix(words, tt.want) || len(d.Decisions()) != 1 {
					t.Errorf("decided %q, %q; want %q", words, d.Decisions(), tt.want)
				}
			})
		})
	}
}
