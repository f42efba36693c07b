package streamable

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Service is what one principal has on a server. [codexserver.Principal] is one. Its
// methods are called from many goroutines.
//
// A service may also have a method Begin(ctx context.Context, t jsonrpc.Transport, ended
// func(error)), which is called in place of Serve. It returns at once, and later calls
// ended, once, with what Serve would have returned. An idle session then needs no goroutine
// that waits in Serve.
type Service interface {
	// Serve serves a client with a handshake until t or ctx ends.
	Serve(ctx context.Context, t jsonrpc.Transport) error
	// Exchange serves one request of MCP 2026-07-28, the only message of t, and returns
	// when it is answered or ctx ends. The client has cancelled the request if the
	// cause of ctx is [jsonrpc.ErrCancelled].
	Exchange(ctx context.Context, t jsonrpc.Transport) error
	// Busy reports whether anything is under way besides Serve and Exchange.
	Busy() bool
	// Close ends everything that is under way. Serve and Exchange have returned.
	Close() error
}

// beginner is a service that needs no goroutine for a session.
type beginner interface {
	Begin(ctx context.Context, t jsonrpc.Transport, ended func(error))
}

var (
	_ Service  = (*codexserver.Principal)(nil)
	_ beginner = (*codexserver.Principal)(nil)
)
