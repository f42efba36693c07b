package mcp

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// attend returns who attends the turn that a call waits for, and the others that it begins. The client is
// asked by requests, whether or not it waits. One that cannot be asked may yet be, while the turn runs, so
// it is asked in any case.
func (c *Connection) attend(id string, o *outlet) (awaited, others thread.Attend) {
	others = thread.Attend{
		Ask: c.PlaceOf(c.AskFor(id)), Comes: c.session.comes(c.canAsk()), Elicit: c.Elicit,
		Client: c.Outlet(),
	}
	awaited = others
	awaited.Comes, awaited.Client = false, o
	return awaited, others
}

// attend returns who attends the turn that the call waits for, and the others that it begins: their questions
// wait for codex-wait.
func (c *call) attend() (awaited, others thread.Attend) {
	others = thread.Attend{Comes: c.session.comes(c.inbox.canAsk)}
	awaited = thread.Attend{Client: &c.outlet}
	if c.inbox.canAsk {
		awaited.Elicit = c.elicit
	}
	if c.inbox.canAsk || others.Comes && c.taskable { // another client may poll the task
		client := c.session.clients.Client(c.client.Name)
		awaited.Ask = &approve.Place{Client: client, Can: func() bool { return c.inbox.canAsk }, Ask: c.ask}
	}
	if c.taskable {
		awaited.Timeout = questionLife
	}
	return awaited, others
}

// comes reports whether a client may come for the questions of a turn that no call waits for, of a
// client that could be asked or not: that one, or any other if the server goes on, and the configuration
// does not say what happens if the client cannot be asked.
func (s *Session) comes(asked bool) bool {
	return asked || s.turns.Stays() && s.server.Approvals.OnUnsupported == ""
}

// call returns a call of a tool by a request of a client with a name, with who attends the turn that it
// waits for, and others.
func (s *Session) call(id jsonrpc.ID, client string, awaited, others thread.Attend) *tools.Call {
	awaited.Submission, others.Submission = callID(id), callID(id)
	return &tools.Call{
		Threads: s.threads, Turns: s.turns, Awaited: awaited, Background: others, Client: client,
	}
}

// PlaceOf returns the place whose questions ask asks the client.
func (c *Connection) PlaceOf(ask Ask) *approve.Place {
	return &approve.Place{Client: c.session.clients.Client(c.ClientName()), Can: c.canAsk, Ask: ask}
}

// callID returns a request's id, a string or a number, as text.
func callID(id jsonrpc.ID) string {
	if s, ok := id.Str(); ok {
		return s
	}
	return id.String()
}

// Ask asks a client a question: the method Ask of an [approve.Place].
type Ask = func(context.Context, *approval.Request) (elicit.Outcome, error)

// AskFor returns a function that asks the client about the turn of a call, "" for none, by elicitation/create.
func (c *Connection) AskFor(call string) Ask {
	return func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		asked := *r.Question // a copy, because others read it
		asked.Extra = codexMembers(call, r)
		return c.hello.Load().asker.Ask(ctx, &asked), nil
	}
}

// codexMembers returns the facts of a question under Codex's names. They are next to the
// message. Most SDKs drop them. Call is the id of the call.
func codexMembers(call string, r *approval.Request) map[string]any {
	m := map[string]any{"threadId": r.Thread.ID}
	codex := r.Subject.Codex()
	if codex == nil {
		return m
	}
	maps.Copy(m, codex.Members)
	m["codex_mcp_tool_call_id"], m["codex_event_id"] = call, r.Turn
	return m
}

// Elicit asks the client a question of another party.
func (c *Connection) Elicit(ctx context.Context, f *approval.Foreign) (json.RawMessage, error) {
	answer, err := c.hello.Load().asker.Forward(ctx, f.Question())
	if err != nil {
		return nil, err
	}
	return f.Read(answer), nil
}
