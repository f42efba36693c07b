// Package modern serves requests of MCP 2026-07-28 and later. Each request has its version
// and the capabilities of its client in its _meta, and the server does not send requests.
//
//	Session ─── discover, tools/list
//	  └─ call ─── rounds: request, question in the result, request with the answer, …, result
//	       ├─ outlet    notifications for the request that waits for the call
//	       ├─ question  an open question; the turn waits for its answer where it is
//	       ├─ state     names the call in the next request; sealed, valid once
//	       └─ task      the call as a client polls it, with a file; listeners receive its changes
//
// A call is a [tools] call that outlives its request. Between two rounds no client waits
// for it. It ends when no client returns in time. docs/wire.md of the module describes the
// messages.
package modern
