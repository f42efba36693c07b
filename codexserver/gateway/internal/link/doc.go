// Package link carries HTTP requests from a front to a node:
//
//	the HTTP client ──▶ Client ── HTTP/2 over mutual TLS ──▶ Server ──▶ handler
//
// If both are in one process, [Server.Do] calls the handler, without a socket.
//
// A request is a stream of HTTP/2: it has its own window, so that a slow client slows down its own request and no other.
// Both sides ping a connection on which they hear nothing, and end all its requests when no answer comes.
//
// [ErrAbsent] and [ErrRefused] mean that a request was not carried out. Any other error leaves that open. The link sends no
// request twice. One header says for whom a request is and which lease the front knows ([Head]): a node refuses one that
// is for another process, or for a lease that it does not hold.
package link
