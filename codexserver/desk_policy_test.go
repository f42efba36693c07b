package codexserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestDeskAndPolicies checks that the policies for undecided questions also apply with a
// desk.
func TestDeskAndPolicies(t *testing.T) {
	const accept, cancel = `{"action":"accept"}`, `{"action":"cancel"}`
	broken := func(context.Context) (string, error) { return "", errors.New("closed") }
	for _, tt := range []struct {
		name    string
		options elicit.Options
		client  func(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error)
		desk    func(context.Context) (string, error)
		want    string // the decision, and who made it
		failed  bool   // the call
	}{
		{"nobody answers, fail-call", elicit.Options{OnTimeout: "fail-call"}, never, silent, "abort by", true},
		{"nobody answers, abort", elicit.Options{OnTimeout: "abort"}, nil, silent, "abort by desk", true},
		{"no client, fail-call, the desk answers", elicit.Options{OnUnsupported: "fail-call"}, nil, says(accept), "approved by desk", false},
		{"no client, fail-call, the desk fails", elicit.Options{OnUnsupported: "fail-call"}, nil, broken, "abort by client", true},
		{"a client that fails, fail-call, the desk answers", elicit.Options{OnError: "fail-call"}, fails, later(time.Second, accept), "approved by desk", false},
		{"a client that fails, fail-call, the desk fails", elicit.Options{OnError: "fail-call"}, fails, broken, "abort by client", true},
		{"nobody chose at the desk", elicit.Options{OnCancel: "deny"}, never, says(cancel), "denied by desk", false},
		{"nobody chose in the client", elicit.Options{OnCancel: "deny"}, action("cancel"), later(time.Second, accept), "denied by client", false},
		{"for ever, answered after a day", elicit.Options{Timeout: -1}, nil, later(24*time.Hour, accept), "approved by desk", false},
		{"safe, but not known to be", elicit.Options{OnUnsupported: "approve-safe-only"}, nil, says(`{"action":"decline"}`), "denied by desk", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &desk{ask: tt.desk}
				c := connect(t, asking, &codexserver.Options{Desk: d, Approvals: tt.options}, tt.client)
				got, _, err := c.call(t.Context(), "codex", map[string]any{"prompt": "p"})
				if err != nil {
					t.Fatal(err)
				}
				if len(d.decided) != 1 || !strings.HasPrefix(d.decided[0], tt.want) || got.IsError != tt.failed {
					t.Errorf("decided %q, want %q; the caller was told %q", d.decided, tt.want, got.Texts)
				}
			})
		})
	}
}

// TestQuestionWithoutTimeoutEnds ends a question without a time-out with its call or its
// session. The end is not an approval.
func TestQuestionWithoutTimeoutEnds(t *testing.T) {
	for _, end := range []string{"cancelled", "closed"} {
		synctest.Test(t, func(t *testing.T) {
			d := &desk{ask: later(48*time.Hour, `{"action":"accept"}`)}
			c := connect(t, asking, &codexserver.Options{Desk: d, Approvals: elicit.Options{Timeout: -1}}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _, _, _ = c.call(ctx, "codex", map[string]any{"prompt": "p"}) }()
			<-time.After(24 * time.Hour)
			if end == "cancelled" {
				cancel()
			} else {
				c.Close()
			}
			<-time.After(time.Second) // a session's end leaves turns a moment
			d.mu.Lock()
			defer d.mu.Unlock()
			if len(d.decided) != 1 || d.decided[0] != "abort by client" {
				t.Errorf("%s: decided %q", end, d.decided)
			}
		})
	}
}

// TestDeskWithMessageMethods uses a desk with a client of the methods of 2025.
func TestDeskWithMessageMethods(t *testing.T) {
	for _, tt := range []struct {
		client, desk, want string
	}{
		{`{"decision":"approved"}`, "", "approved by client"},
		{`{"decision":"denied"}`, "", "denied by client"},
		{`{"decision":"maybe"}`, "", "denied by client"},
		{`{}`, "", "denied by client"},
		{`{"decision":"approved"}`, `{"action":"decline"}`, "denied by desk"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &desk{ask: silent}
			if tt.desk != "" {
				d.ask = says(tt.desk)
			}
			c := connectWith(t, asking, &codexserver.Options{Desk: d})
			c.decision = []byte(tt.client)
			id := c.newConversation(t)
			c.ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[]}`, id))
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			if len(d.decided) != 1 || d.decided[0] != tt.want {
				t.Errorf("client %s, desk %s: %q, want %q", tt.client, tt.desk, d.decided, tt.want)
			}
		})
	}
}

// TestDeskSeesResumedConversation resumes a conversation, which then has not ended for the
// desk.
func TestDeskSeesResumedConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{ask: silent}
		c := connectWith(t, &full{TurnFunc: echo}, &codexserver.Options{Desk: d})
		for range 2 {
			c.ask(t, "resumeConversation", `{"path":"/rollouts/past"}`)
		}
		c.ask(t, "archiveConversation", `{"conversationId":"past","rolloutPath":"/rollouts/past"}`)
		d.mu.Lock()
		defer d.mu.Unlock()
		if got, want := strings.Join(d.seen, " "), "session_configured session_configured shutdown_complete"; got != want {
			t.Errorf("seen %q, want %q", got, want)
		}
	})
}
