// Package link carries HTTP requests over NATS: a [Client] sends them, a [Server] has the
// handler.
//
//	the HTTP client ──▶ Client ── head, body ──▶ Server ──▶ handler
//	                           ◀── head, body ──
//
// A request and its answer are an exchange. Its id is random, so only the two sides know it.
// Each side sends frames to a subject that has the id, and numbers them: a frame that is
// lost, comes twice or comes out of order ends the exchange with an error, because NATS
// delivers at most once.
//
// A side sends at most [window] frames of a body before the other one has passed them on, so
// that a slow client slows down its own exchange and no other. Both sides send a frame at
// least every [Options].Heartbeat, and an exchange ends with an error when one side has heard
// nothing for three times as long.
//
// The server carries out a request at most once. [ErrRefused] and [ErrAbsent] mean that it was
// not carried out.
package link
