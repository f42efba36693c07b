package codexserver

import (
	"context"

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
func (s *Server) Working() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for c := range s.guests {
		if c.Busy() {
			n++
		}
	}
	return n
}

// welcome adds a client of ServeFrom, until the function that it returns is called.
func (s *Server) welcome(c *mcp.Client) (left func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guests == nil {
		s.guests = map[*mcp.Client]bool{}
	}
	s.guests[c] = true
	return func() {
		s.mu.Lock()
		delete(s.guests, c)
		last := len(s.guests) == 0
		s.mu.Unlock()
		if last { // the results remain, and their threads are found in files
			if err := s.turns.Rekeep(s.threads.Share("")).Close(); err != nil {
				s.log.Warn("closing threads", "error", err)
			}
		}
	}
}

// guestTurns returns the turns of the clients of ServeFrom.
func (s *Server) guestTurns(ctx context.Context) *tools.Turns {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns == nil {
		s.turns = tools.NewSharedTurns(context.WithoutCancel(ctx), s.threads.Share(""))
	}
	return s.turns
}
