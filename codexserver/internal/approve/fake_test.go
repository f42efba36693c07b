package approve_test

import (
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

func panics(context.Context) (string, error) { panic("a fault of the desk") }

// client is a place that asks as the clients of a server are asked.
type client struct {
	name  approval.Decider
	asker *elicit.Asker
}

func newClient(a servertest.Answer, o *elicit.Options) client {
	able := elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`)}
	call := func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		words, err := a(ctx)
		return json.RawMessage(words), err
	}
	return client{approval.ByClient, elicit.NewAsker(elicit.CallFunc(call), able, o)}
}

// unable is a client that cannot be asked.
func unable(o *elicit.Options) client {
	return client{approval.ByClient, elicit.NewAsker(elicit.CallFunc(nil), elicit.Client{}, o)}
}

func (c client) Decider() approval.Decider { return c.name }

func (c client) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	return c.asker.Ask(ctx, r.Question), nil
}

// raw is a place that returns the outcome that it is made of.
type raw struct {
	name approval.Decider
	ask  func(context.Context, *approval.Request) (elicit.Outcome, error)
}

func (p raw) Decider() approval.Decider { return p.name }

func (p raw) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	return p.ask(ctx, r)
}

// request asks to run `git init`.
func request() *approval.Request {
	exec := protocol.ExecApprovalRequest{CallID: "c", Command: []string{"git", "init"}, Cwd: "/work"}
	return &approval.Request{
		Thread:   approval.Thread{ID: "t"},
		Event:    exec,
		Question: (&elicit.ExecQuestion{Command: exec.Command, Cwd: exec.Cwd}).Question(),
	}
}

// inviterDesk is a desk with an invitation that may panic.
type inviterDesk struct {
	*servertest.Desk
	invites func() string
}

func (d inviterDesk) Invite() string { return d.invites() }
