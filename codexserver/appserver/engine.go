package appserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/keeper"
	"github.com/codexmcp/codexmcp/codexserver/internal/recursion"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Options say which Codex to drive and how. Nil is valid, and the zero value of
// each field its default.
type Options struct {
	// Path is the codex program. Default: $CODEX_BIN, else codex of the PATH.
	Path string
	// Overrides are keys of config.toml over the file, as nested tables. They
	// reach the app-server as -c, and one that was dialled with each new
	// conversation.
	Overrides map[string]any
	// CodexHome is Codex's folder. Default: $CODEX_HOME, else ~/.codex.
	CodexHome string
	// AskUser has the user decide all approvals, even if the configuration leaves them to
	// a reviewing model (approvals_reviewer). Default: as configured.
	AskUser bool
	// Self is the program that serves the conversations. An MCP server of
	// Codex's configuration that would start it is disabled in each: it would
	// be asked to start itself. Default: none is.
	Self string
	// Version is the version of the program that uses the engine, as Codex
	// records it. Default: "dev".
	Version string
	// Dial connects to an app-server that runs already, in place of starting one. Path
	// then has no effect, and CodexHome only if the app-server does not report its own.
	Dial func(context.Context) (jsonrpc.Transport, error)
	// Logger gets what an operator should know: warnings of Codex, declined
	// requests, and at the level Debug its standard error. Default: nothing.
	Logger *slog.Logger
}

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

func (o *Options) clientVersion() string {
	if o.Version == "" {
		return "dev"
	}
	return o.Version
}

// Engine drives one app-server, which runs from the first call that needs it
// until Close. It is safe for concurrent use.
type Engine struct {
	options  Options
	args     []string // of the app-server
	defaults defaults // of every conversation
	self     *recursion.Program
	keepers  *keeper.Pool // nil where there are none

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	launch *launch         // the run that is or was last
	deaths []time.Time     // of runs, within the last minute
	left   map[string]bool // MCP servers that were said to be left out
}

// launch is one run of the app-server in the making, and then made.
type launch struct {
	done  chan struct{}
	child *child
	err   error
}

// New returns an engine. It starts nothing and needs no codex program yet: the first call
// reports what is wrong with that. The error is about Overrides.
func New(o *Options) (*Engine, error) {
	e := &Engine{}
	if o != nil {
		e.options = *o
	}
	var err error
	if e.args, e.defaults, err = commandLine(e.options.Overrides); err != nil {
		return nil, fmt.Errorf("appserver: %w", err)
	}
	e.self = recursion.New(e.options.Self)
	if sandbox.CanKeep() {
		e.keepers = &keeper.Pool{}
	}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e, nil
}

// Close ends the app-server with everything it has started, and with it all
// turns. It returns within about a second, when nothing is left. The error says
// that processes are left which cannot be killed.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.work.Wait()
	if e.keepers == nil {
		return nil
	}
	return e.keepers.Close()
}

// maxDeaths is how many runs may end within a minute before the engine gives up
// starting new ones.
const maxDeaths = 4

// child returns the app-server that runs, and starts one if none does.
func (e *Engine) child(ctx context.Context) (*child, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errClosed
	}
	l := e.launch
	if l == nil || l.over() {
		if err := e.exhausted(l); err != nil {
			e.mu.Unlock()
			return nil, err
		}
		l = &launch{done: make(chan struct{})}
		e.launch = l
		e.work.Go(func() { e.start(l) })
	}
	e.mu.Unlock()
	select {
	case <-l.done:
		return l.child, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// over reports whether the run has failed or ended.
func (l *launch) over() bool {
	select {
	case <-l.done:
		return l.err != nil || l.child.isGone()
	default:
		return false
	}
}

// exhausted says that the app-server dies too often. The lock is held.
func (e *Engine) exhausted(last *launch) error {
	for len(e.deaths) > 0 && time.Since(e.deaths[0]) > time.Minute {
		e.deaths = e.deaths[1:]
	}
	if len(e.deaths) < maxDeaths {
		return nil
	}
	return fmt.Errorf("codex app-server ended %d times within a minute and is not started again for now; last: %w", len(e.deaths), last.child.obituary())
}

// start runs the app-server until it ends or the engine does.
func (e *Engine) start(l *launch) {
	l.child, l.err = e.open(e.ctx)
	close(l.done)
	if l.err != nil {
		return
	}
	c := l.child
	select {
	case <-c.gone:
		e.mu.Lock()
		e.deaths = append(e.deaths, time.Now())
		e.mu.Unlock()
		if err := c.obituary(); !errors.Is(err, errClosed) {
			c.log.Warn("codex: " + err.Error())
		}
	case <-e.ctx.Done():
	}
	c.close()
}

// StreamsEvents implements [engine.Streamer]: the events of all threads come from one
// app-server, and none of them may hold up the others or the questions between them.
func (*Engine) StreamsEvents() {}

// Start implements [engine.Engine].
func (e *Engine) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	p, err := e.params(ctx, cfg, c, "")
	if err != nil {
		return nil, err
	}
	return e.begin(ctx, c, "thread/start", p, host)
}
