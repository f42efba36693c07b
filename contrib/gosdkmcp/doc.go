// Package gosdkmcp connects a client of the official Go SDK for MCP to a Codex server in the
// same process, so that an agent can use Codex as a set of tools without a child process:
//
//	your agent ── mcp.Client ── Transport ── codexserver.Server ── engine
//
// The client works as usual: it lists the tools, calls them and gets their progress. Its
// ElicitationHandler answers approvals. Frameworks that accept an [mcp.Transport] or an
// [mcp.ClientSession] accept this one.
//
//	session, err := mcp.NewClient(me, options).Connect(ctx, &gosdkmcp.Transport{Server: server}, nil)
//
// # Errors
//
// A client without an ElicitationHandler cannot be asked: whatever needs an approval is
// denied, and the result says why. The end of a call's context interrupts its turn. Closing
// the session waits for calls, and interrupts turns in the background.
//
// # Where to go next
//
// The program contrib/examples/gosdk/inprocess asks in the terminal. Package codexserver makes the server;
// its method Run hands over a task without MCP.
package gosdkmcp
