// Package streamable serves MCP over Streamable HTTP. A [Handler] is an
// [http.Handler] on a [codexserver.Server]; each request is of one of two eras:
//
//	2026-07-28                one POST a request, which says everything in its _meta
//	2025-03-26 to 2025-11-25  a session: POST, GET for what belongs to no request, DELETE
//
// Nothing is read of a request before it is known whose it is: [Options].Authenticate
// names its principal, and the [Scope]s of its token. What belongs to a principal
// (sessions, tasks, open questions, open threads) does not exist for another one.
//
//	Handler ─── Guard      Host, Origin, principal; each message is held to the scopes
//	  ├─ exchange          a request of 2026-07-28 with its answer, a JSON text or a stream
//	  └─ session           a client with a handshake
//	       └─ stream       what goes out for one request, or for none; taken up again by Last-Event-ID
//
// The two ends of a session's and of an exchange's traffic are [jsonrpc.Transport]s:
// everything behind them is as on standard input and output.
package streamable
