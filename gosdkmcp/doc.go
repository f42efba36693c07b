// Package gosdkmcp connects a client of the official Go SDK for MCP to a Codex
// server in the same process, so that an agent takes Codex as a set of tools
// without a child process:
//
//	your agent ── mcp.Client ── Transport ── codexserver.Server ── engine
//
// The client is one like any other: it lists the tools, calls them, gets the
// progress, and is asked for approvals by its ElicitationHandler. Frameworks that
// take an [mcp.Transport] or an [mcp.ClientSession], such as adk, take this one.
//
//	session, err := mcp.NewClient(me, options).Connect(ctx, &gosdkmcp.Transport{Server: server}, nil)
//
// # What can go wrong
//
// A client without an ElicitationHandler cannot be asked: what needs an approval is
// denied, and the result says why. The end of a call's context interrupts its turn.
// Closing the session waits for calls, and interrupts turns in the background.
//
// # Where to go next
//
// Package codexserver makes the server, and its method Run hands over a task without
// MCP. The module einotool has a tool for eino.
package gosdkmcp
