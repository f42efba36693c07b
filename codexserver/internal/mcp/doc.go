// Package mcp speaks the wire of both eras of MCP: connections that begin with a handshake, up
// to 2025-11-25, and requests of 2026-07-28, which each have their version and the capabilities of
// their client in their _meta.
// The eras differ in how they carry a question, an event and a result.
//
//	Server ─── Session ─── threads and turns of a client, in both eras; discover, tools
//	  ├─ outlet      events, progress and log messages for the request that waits for a turn
//	  ├─ Connection  with a handshake too: initialize, tools, elicitation/create, roots
//	  └─ call ─── rounds: request, question in the result, request with the answer, …, result
//	       ├─ question  an open question; the turn waits for its answer where it is
//	       ├─ state     names the call in the next request; random, valid once
//	       └─ task      the call as a client polls it, with a file; listeners receive its changes
//
// The server sends no requests to clients of 2026-07-28. A call of theirs is a [tools] call that
// outlives its request. Between two rounds no client waits for it. It ends when no client returns
// in time. docs/wire.md of the module describes the messages.
package mcp
