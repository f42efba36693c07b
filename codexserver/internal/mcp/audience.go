package mcp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// way is how the client of a call is asked. Its era says so: a client with a handshake gets
// requests (legacy_ask.go), one of 2026-07-28 gets questions in results (question.go).
type way struct {
	turn       approve.Place // about the turn that the call waits for; nil if the client cannot be asked
	background approve.Place // about others
	comes      bool          // a client may come for the questions of others
	caller     approve.Place // see [mcptool.Audience]; nil if the client cannot be asked
	session    context.Context
	elicit     func(context.Context, *elicit.Foreign) (json.RawMessage, error) // nil if the client cannot be asked
	patience   time.Duration
}

// audience returns who attends the turns of a call and is asked: O observes the turn that the call
// waits for, and background others.
func (c *Client) audience(ctx context.Context, w way, o thread.Observer, background ...thread.Observer) mcptool.Audience {
	observer := thread.ObserverOf(ctx)
	a := mcptool.Audience{
		Turn:       thread.Attendance{Observers: []thread.Observer{o}, Observer: observer, Awaited: true, Elicit: w.elicit, Patience: w.patience},
		Background: thread.Attendance{Observers: background, Observer: observer},
		Caller:     w.caller,
		Session:    w.session,
	}
	if w.session != nil {
		a.Background.Elicit = w.elicit
	}
	a.Turn.Place, a.Background.Place, a.Background.Comes = w.turn, w.background, w.comes
	return a
}

// call returns a call of a tool by a request of a client with the name host.
func (c *Client) call(id jsonrpc.ID, host string, a mcptool.Audience) *mcptool.Call {
	return &mcptool.Call{
		ID: callID(id), Threads: c.threads, Jobs: c.jobs, Audience: a, Host: host,
		Folders: func(context.Context) []string { return mcptool.StartFolders(c.ctx, c.server.Folder) },
	}
}

// comes reports whether a client may come for the questions of a turn that no call waits for, of a
// client that could be asked or not: that one, or any other if the server goes on, and the configuration
// does not say what happens if the client cannot be asked.
func (c *Client) comes(asked bool) bool {
	return asked || c.jobs.Stays() && c.server.Approvals.OnUnsupported == ""
}
