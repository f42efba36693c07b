package mcphttp

import (
	"context"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Service serves the requests of one principal. Principal of package codexserver is one. Its methods
// are called from many goroutines.
type Service interface {
	// Serve serves a client with a handshake until t or ctx ends.
	Serve(ctx context.Context, t jsonrpc.Transport) error
	// Exchange serves one request of MCP 2026-07-28, the only message of t. It returns
	// when the request is answered or ctx ends. If the client has cancelled the request,
	// the cause of ctx is [jsonrpc.ErrCancelled].
	Exchange(ctx context.Context, t jsonrpc.Transport) error
	// Busy reports whether work is running that neither Serve nor Exchange waits for.
	Busy() bool
	// Parked reports whether a call of Exchange has asked its client, and has not ended.
	Parked() bool
	// Reads reports whether a call of a tool only reads, so that the scope codex:read is enough for it.
	Reads(tool string) bool
	// Close ends that work. It is called after Serve and Exchange have returned.
	Close() error
}
