package codexserver

import (
	"context"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// ServeFrom is [Server.Serve] for one of several programs of one user that share the server.
// The folder and the environment of commands are those of the client. The client's tasks
// and its turns in the background outlive it: another client finds them by their ids, and is
// asked their open questions.
// ServeFrom calls left, from another goroutine, when the client has gone, and returns when
// its work has ended too. The end of ctx ends the work.
//
// A thread keeps the environment of the client that opened it, until it is closed. All
// clients share the engine, and so the keys of its providers.
func (s *Server) ServeFrom(ctx context.Context, t jsonrpc.Transport, from engine.Origin, left func()) error {
	return s.serve(engine.WithOrigin(ctx, from), nil, left, t)
}

// Working returns how many clients of [Server.ServeFrom], present or gone, have a turn that
// runs or is queued.
func (s *Server) Working() int { return s.guests.working() }

// crowd are clients with a handshake that share their turns: those of a principal, or of [Server.ServeFrom].
type crowd struct {
	turns *tools.Turns

	mu      sync.Mutex
	clients map[*mcp.Session]bool
}

// enter adds a client, until left is called, which reports whether it was the last one. Nil has no clients.
func (c *crowd) enter(client *mcp.Session) (left func() (last bool)) {
	if c == nil {
		return func() bool { return false }
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients == nil {
		c.clients = map[*mcp.Session]bool{}
	}
	c.clients[client] = true
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.clients, client)
		return len(c.clients) == 0
	}
}

// working returns how many of the clients have a turn that runs or is queued.
func (c *crowd) working() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for client := range c.clients {
		if client.Works() {
			n++
		}
	}
	return n
}
