// Package modern serves requests as MCP has them from 2026-07-28 on: each says in its
// _meta which version it follows and what its client can do, and the server sends no
// request.
//
//	Session ─── discover, tools/list
//	  └─ call ─── rounds: request, question in the result, request with the answer, …, result
//	       ├─ outlet    notifications for the request that waits for the call
//	       ├─ question  an open question; the turn waits for its answer where it is
//	       ├─ state     names the call in the next request, sealed, good for one time
//	       └─ task      the call as a client polls it, with a file; listeners hear of its changes
//
// A call is a [tools] call that outlives its request. Between two rounds no client waits
// for it; it ends when no client comes back in time. See docs/wire.md of the module for
// what is on the wire.
package modern
