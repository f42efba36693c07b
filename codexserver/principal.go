package codexserver

import (
	"context"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Principal is a user of a server whose requests come over many connections, as with HTTP.
// No other principal sees its tasks, open questions and open threads. It is safe for
// concurrent use.
//
// Principals share the files of closed threads: every principal that knows the id of such a
// thread can resume it, and codex-list lists all of them.
type Principal struct {
	server  *Server
	name    string
	end     context.CancelCauseFunc
	session *mcp.Session
	life    context.Context // of turns in the background
	threads *thread.Share   // holds the threads of turns in the background
	turns   *tools.Turns    // of the session, which clients with a handshake share
}

// Principal returns the principal of that name, which the caller must close. Its turns end
// with ctx. A program makes only one for each name.
func (s *Server) Principal(ctx context.Context, name string) *Principal {
	life, end := context.WithCancelCause(ctx)
	threads := s.threads.Share(name)
	turns := tools.NewSharedTurns(life, threads)
	return &Principal{
		server: s, name: name, end: end, life: life, threads: threads, turns: turns,
		session: s.wire.NewSession(life, s.threads.Share(name), turns),
	}
}

// Serve is [Server.Serve] for a client of the principal, with a handshake. The client has
// only MCP. It does not have the JSON-RPC methods of September 2025, which run commands and
// choose the sandbox without a question, because only the user who started the server may.
func (p *Principal) Serve(ctx context.Context, t jsonrpc.Transport) error {
	life, end := context.WithCancelCause(ctx)
	turns := p.turns.Share(p.life, false)
	c := p.server.connect(ctx, p.server.wire.NewSession(life, p.server.threads.Share(p.name), turns), p.session)
	err := c.run(t)
	end(jsonrpc.ErrClosed)
	err = c.close(err)
	turns.Leave()
	return err
}

// Exchange serves requests without a handshake (MCP 2026-07-28), until the input of t has
// ended and all requests are answered. Tool calls may continue afterwards. When ctx ends
// with the cause [jsonrpc.ErrCancelled], they are cancelled.
func (p *Principal) Exchange(ctx context.Context, t jsonrpc.Transport) error {
	client := p.session.Connect(p.session, approval.MayAsk(ctx), func() {})
	return verdict(ctx, client.Peer(t, p.server.observed(client.Handler(nil)), p.server.trace).Run(ctx))
}

// Busy reports whether a turn runs, in the background too, or a call of [Principal.Exchange].
func (p *Principal) Busy() bool {
	return p.session.Busy() || len(p.turns.Working()) > 0
}

// Parked reports whether a call of [Principal.Exchange] has asked its client, and has not ended. Only this process
// can take the answer.
func (p *Principal) Parked() bool { return p.session.Parked() }

// Reads reports whether calls of a tool only read what the server has.
func (p *Principal) Reads(tool string) bool { return tools.Reads(tool) }

// Close ends the principal's turns and closes its threads. Call it after Exchange and Serve
// have returned.
func (p *Principal) Close() error {
	p.end(jsonrpc.ErrClosed)
	err := p.session.Close()
	p.turns.Wait()
	return errors.Join(err, p.threads.Close())
}
