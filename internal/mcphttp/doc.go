// Package mcphttp serves MCP over Streamable HTTP, and connects clients to such
// servers with a [Client]. Package streamable is the part of it for embedding programs. A [Handler] is an
// [http.Handler]. Each request belongs to one of two eras:
//
//	2026-07-28                one POST per request, with all metadata in its _meta
//	2025-03-26 to 2025-11-25  a session: POST, GET for messages that belong to no request, DELETE
//
// The handler reads no body before it knows the principal of the request:
// [Options].Authenticate returns the principal and the [Scope]s of its token. A principal
// cannot see the sessions, tasks, open questions and open threads of another one.
//
//	Handler ─── Guard      checks Host, Origin and principal, and the scopes of each message
//	  ├─ exchange          a request of 2026-07-28 with its answer: a session of one stream
//	  └─ session           a client with a handshake
//	       └─ stream       the messages for one request, or for none; resumed by Last-Event-ID
//
// A session is a [jsonrpc.Transport], so the server behind it works as on standard input and
// output.
package mcphttp
