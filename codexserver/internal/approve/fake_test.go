package approve_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

func panics(context.Context) (string, error) { panic("a fault of the desk") }

// newClient returns a place that asks as the clients of a server are asked: with nil one that cannot be asked.
func newClient(a servertest.Answer, o *elicit.Options) *approve.Place {
	var client elicit.Client
	if a != nil {
		client.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	}
	asker := elicit.NewAsker(elicit.CallFunc(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		words, err := a(ctx)
		return json.RawMessage(words), err
	}), client, o)
	return &approve.Place{Ask: func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		return asker.Ask(ctx, r.Question), nil
	}}
}

// request asks to run `git init`.
func request() *approval.Request {
	exec := protocol.ExecApprovalRequest{CallID: "c", Command: []string{"git", "init"}, Cwd: "/work"}
	return &approval.Request{Thread: approval.Thread{ID: "t"}, Event: exec, Question: approval.ExecQuestion(exec, "", "")}
}

// inviterDesk is a desk with an invitation that may panic.
type inviterDesk struct {
	*servertest.Desk
	invites func() string
}

func (d inviterDesk) Invite() string { return d.invites() }

// decide has a client answer a request.
func decide(t *testing.T, b *approve.Board, answer string, r *approval.Request) approval.Decision {
	t.Helper()
	defer b.Attach(newClient(servertest.Say(answer), nil))()
	return b.Decide(t.Context(), r, false)
}
