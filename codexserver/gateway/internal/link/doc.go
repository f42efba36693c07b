// Package link carries HTTP requests from a front to a node: a [Client] sends them, a [Server] has
// the handler.
//
//	the HTTP client ──▶ Client ── HTTP/2 over mutual TLS ──▶ Server ──▶ handler
//
// If both are in one process, [Server.Do] calls the handler, without a socket.
//
// A request and its answer are an exchange, a stream of HTTP/2: it has its own window, so that a slow
// client slows down its own exchange and no other. Both sides ping a connection on which they hear
// nothing, and end all its exchanges with an error when no answer comes.
//
// A request is carried out at most once. [ErrRefused] and [ErrAbsent] mean that it was not carried
// out. Each request has the time of the server, as the client has last learned it: a server does not
// begin one that comes late, and a client reports another error only when the server would not begin
// the request any more. The server remembers the requests of that time, and begins none twice.
package link
