package mcp

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// attend returns who attends the turn that a call waits for, and the others that it begins. The client is
// asked by requests, whether or not it waits. One that cannot be asked may yet be, while the turn runs, so
// it is asked in any case.
func (ss *LegacySession) attend(ctx context.Context, id string, o *outlet) (awaited, others thread.Attend) {
	others = thread.Attend{
		Ask: ss.PlaceOf(ss.asks(id)), Comes: ss.client.comes(ss.canAsk()), Elicit: ss.Elicit,
		Observers: []thread.Observer{ss.Outlet()}, Observer: thread.ObserverOf(ctx),
	}
	awaited = others
	awaited.Comes, awaited.Observers, awaited.Awaited = false, []thread.Observer{o}, true
	return awaited, others
}

// attend returns who attends the turn that the call waits for, and the others that it begins: their questions
// wait for codex-wait.
func (c *call) attend(ctx context.Context) (awaited, others thread.Attend) {
	others = thread.Attend{Comes: c.session.client.comes(c.inbox.canAsk), Observer: thread.ObserverOf(ctx), Leaves: true}
	awaited = thread.Attend{Observer: others.Observer, Observers: []thread.Observer{&c.outlet}, Leaves: true, Awaited: true}
	if c.inbox.canAsk {
		awaited.Elicit = c.elicit
	}
	if c.inbox.canAsk || others.Comes && c.taskable { // another client may poll the task
		host := c.session.client.hosts.Host(c.attached.client.Name)
		awaited.Ask = &approve.Client{Host: host, Can: func() bool { return c.inbox.canAsk }, Asks: c.ask}
	}
	if c.taskable {
		awaited.Timeout = questionLife
	}
	return awaited, others
}

// comes reports whether a client may come for the questions of a turn that no call waits for, of a
// client that could be asked or not: that one, or any other if the server goes on, and the configuration
// does not say what happens if the client cannot be asked.
func (c *Client) comes(asked bool) bool {
	return asked || c.turns.Stays() && c.server.Approvals.OnUnsupported == ""
}

// call returns a call of a tool by a request of a client with the name host, with who attends the turn that it
// waits for, and others.
func (c *Client) call(id jsonrpc.ID, host string, awaited, others thread.Attend) *tools.Call {
	awaited.Submission, others.Submission = callID(id), callID(id)
	return &tools.Call{
		Threads: c.threads, Turns: c.turns, Awaited: awaited, Background: others, Host: host,
		Folders: func(context.Context) []string { return tools.StartFolders(c.ctx, c.server.Folder) },
	}
}
