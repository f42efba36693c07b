package codexserver

import (
	"context"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/modern"
	"github.com/codexmcp/codexmcp/codexserver/internal/pace"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Principal is one user of a server whose requests come over many connections, as
// over HTTP. Its tasks, open questions and open threads are its own. It is safe for
// concurrent use.
//
// History files are not divided: a thread that is not open can be taken up by every
// principal that knows its id, and codex-list names all of them.
type Principal struct {
	server  *Server
	eras    eras
	name    string
	end     context.CancelCauseFunc
	threads *thread.Share
	jobs    *tools.Jobs
	session *modern.Session

	mu      sync.Mutex
	clients map[*tools.Jobs]bool // the turns of clients with a handshake
}

// Principal returns what the user of that name has here, to be closed. Its turns end
// with ctx. A program makes one for each name.
func (s *Server) Principal(ctx context.Context, name string) *Principal {
	return s.newPrincipal(ctx, name, s.eras)
}

// Approver is [Server.Principal] for the principal of [Options].Approver, where it only
// decides: its clients have the tool codex-wait alone, which brings them the questions.
func (s *Server) Approver(ctx context.Context) *Principal {
	return s.newPrincipal(ctx, s.approver, s.deciding)
}

func (s *Server) newPrincipal(ctx context.Context, name string, eras eras) *Principal {
	turns, end := context.WithCancelCause(ctx)
	threads, jobs := s.threads.Share(name), tools.NewJobs(turns)
	return &Principal{
		server: s, eras: eras, name: name, end: end, threads: threads, jobs: jobs,
		session: modern.NewSession(turns, eras.modern, name, true, threads, jobs, &pace.Pace{}),
		clients: map[*tools.Jobs]bool{},
	}
}

// withoutQuestions is the key of a context whose client gets no questions.
type withoutQuestions struct{}

// WithoutQuestions returns a context for [Principal.Serve] and [Principal.Exchange]
// whose client is not asked, whatever it declares: it may not approve. Its questions are
// decided by [Options].Approvals, as those of a client that shows no forms.
func WithoutQuestions(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutQuestions{}, true)
}

// asks reports whether the client of a context may be asked.
func asks(ctx context.Context) bool { return ctx.Value(withoutQuestions{}) == nil }

// Serve is [Server.Serve] for a client of the principal, with a handshake. It has MCP
// alone: the JSON-RPC methods of September 2025 run commands and choose the sandbox
// without asking, as the user who started the server may.
func (p *Principal) Serve(ctx context.Context, t jsonrpc.Transport) error {
	return p.server.serve(ctx, p, t)
}

// Exchange serves requests that say everything in their _meta (MCP 2026-07-28), until
// the input of t has ended and they are answered. Their calls outlive it. When ctx
// ends they are cancelled if its cause is [jsonrpc.ErrCancelled].
func (p *Principal) Exchange(ctx context.Context, t jsonrpc.Transport) error {
	hooks := p.server.trace
	handler := p.server.observed(p.name, t, p.session.Handler(asks(ctx)))
	return verdict(ctx, jsonrpc.NewPeer(t, handler, p.server.peerOptions(&hooks)).Run(ctx))
}

// joined adds the turns of a client with a handshake.
func (p *Principal) joined(jobs *tools.Jobs) (left func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[jobs] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.clients, jobs)
	}
}

// Busy reports whether a turn is under way, in the background too, or a call that did
// not come over [Principal.Serve].
func (p *Principal) Busy() bool {
	if p.session.Busy() || p.jobs.Busy() {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for jobs := range p.clients {
		if jobs.Busy() {
			return true
		}
	}
	return false
}

// Close ends the principal's turns and closes its threads. Exchange and Serve must
// have returned.
func (p *Principal) Close() error {
	p.end(jsonrpc.ErrClosed)
	p.session.Wait()
	p.server.modern.Tasks.Wait()
	p.jobs.Wait()
	return p.threads.Close()
}
