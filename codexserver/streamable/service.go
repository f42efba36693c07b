package streamable

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Service is what one principal has on a server. [codexserver.Principal] is one. Its
// methods are called from many goroutines.
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

var _ Service = (*codexserver.Principal)(nil)
