package codexserver

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/engine"
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
	ctx = engine.WithOrigin(ctx, from)
	turns := s.guests.Share(ctx, true)
	session := s.wire.NewSession(ctx, s.threads.Share(""), turns)
	c := s.connect(ctx, session, session)
	err := c.run(t, c.methods()...)
	session.Leave()
	left()
	turns.Wait()
	err = c.close(err)
	if turns.Leave() { // the results remain, and their threads are found in files
		if err := turns.Rekeep(s.threads.Share("")).Close(); err != nil {
			s.log.Warn("closing threads", "error", err)
		}
	}
	return err
}

// Working says, for a person, which turns of clients of [Server.ServeFrom], present or gone, run or are queued: a
// line for each has the thread, the folder, and what the turn does.
func (s *Server) Working() []string { return s.guests.Working() }
