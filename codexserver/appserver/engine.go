package appserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/internal/self"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Options say which Codex to drive and how. Nil is valid; the zero value of each field is
// its default.
type Options struct {
	// Path is the codex program. Default: $CODEX_BIN, else codex in the PATH.
	Path string
	// Overrides are keys that win over config.toml, as nested tables. The engine starts
	// the app-server with them as -c.
	Overrides map[string]any
	// CodexHome is Codex's folder. Default: $CODEX_HOME, else ~/.codex.
	CodexHome string
	// Store gets the rollout of a conversation at the end of each of its turns. A turn whose
	// machine dies is then reported as lost elsewhere. It must be that of the server. Default:
	// the rollouts are only files.
	Store safefile.Mirror
	// Codex says who decides what Codex asks about, and how long a turn waits for the network.
	Codex setting.Codex
	// Guarded are files that this program writes, absolute paths. A turn or command that may
	// write a folder that holds one is refused. Default: none.
	Guarded []string
	// Ask lists beginnings of commands that a person is asked about each time, also as a check. What the model runs,
	// Codex judges. Default: none.
	Ask [][]string
	// Self is the path of this program. An MCP server in Codex's configuration that
	// would start it is disabled in each conversation, since it would start itself
	// without end. Default: none is disabled.
	Self string
	// Version is the version of this program, which Codex records. Default: "dev".
	Version string
	// Logger logs Codex's warnings, requests that were declined without a question, and,
	// at the level Debug, its standard error. Default: nothing is logged.
	Logger *slog.Logger
}

// Engine drives one app-server, which runs from the first call that needs it
// until Close. It is safe for concurrent use.
type Engine struct {
	options  Options
	args     []string // of the app-server
	defaults defaults // of every conversation
	self     *self.Program
	programs *box.Programs

	system    string // a [runtime.GOOS]
	processes run.Starter
	open      func(context.Context) (*child, error) // starts the app-server

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup
	left sync.Map // the disabled MCP servers that were logged

	mu     sync.Mutex
	launch *launch // the current or last run of the app-server
}

// launch is one run of the app-server. Child and err are set when done is closed.
type launch struct {
	done  chan struct{}
	child *child
	err   error
}

// Main must be the first statement of the program's main function, and of TestMain in a
// test. On Linux, [New] fails without it. The app-server and all that it starts end with the
// program, however that ends. Main of package native does the same; call one of the two.
func Main() { box.Main() }

// New returns an engine. It starts nothing and does not look for the codex program. The
// error is about Overrides, or says that main does not call [Main].
func New(o *Options) (*Engine, error) {
	e := &Engine{programs: &box.Programs{}, system: runtime.GOOS}
	if o != nil {
		e.options = *o
	}
	e.options.Version = cmp.Or(e.options.Version, "dev")
	e.options.Codex = e.options.Codex.Resolved()
	if e.options.Logger == nil {
		e.options.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if e.args, e.defaults, err = commandLine(e.options.Overrides); err != nil {
		return nil, fmt.Errorf("appserver: %w", err)
	}
	if err := run.Ready(); err != nil {
		return nil, fmt.Errorf("appserver: %w", err)
	}
	e.open = e.openInstalled
	e.self = self.New(e.options.Self)
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e, nil
}

// Close ends all turns, the app-server and everything that it started. It returns within
// about a second. The error says that some processes could not be killed.
func (e *Engine) Close() error {
	e.mu.Lock() // no run starts after that
	e.stop()
	e.mu.Unlock()
	e.work.Wait()
	return e.processes.Close()
}

// child returns the running app-server. It starts one if none runs.
func (e *Engine) child(ctx context.Context) (*child, error) {
	e.mu.Lock()
	if e.ctx.Err() != nil {
		e.mu.Unlock()
		return nil, errClosed
	}
	l := e.launch
	if l == nil || closed(l.done) && (l.err != nil || closed(l.child.gone)) { // it has failed or ended
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

// childFor returns it for a conversation in a working folder, which is recorded; "" is the default.
func (e *Engine) childFor(ctx context.Context, cwd string) (*child, error) {
	if err := config.CheckFolder(cwd); err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	e.programs.Given(cwd)
	return e.child(ctx)
}

// start runs the app-server until it ends or the engine is closed.
func (e *Engine) start(l *launch) {
	l.child, l.err = e.open(e.ctx)
	close(l.done)
	if l.err != nil {
		return
	}
	c := l.child
	select {
	case <-c.gone:
		if err := c.obituary(); !errors.Is(err, errClosed) {
			c.log.Warn("codex: " + err.Error())
		}
	case <-e.ctx.Done():
	}
	c.close()
}

// Traits implements [engine.Describer]. The events and questions of all threads come over one
// connection, so no event may delay the next.
func (e *Engine) Traits() engine.Traits {
	return engine.Traits{Confines: true, Streams: true, Reach: e.programs.Folders, CanContinue: e.canContinue}
}

// Start implements [engine.Engine].
func (e *Engine) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	c, err := e.childFor(ctx, cfg.Cwd)
	if err != nil {
		return nil, err
	}
	s, err := e.settings(ctx, cfg, c, nil)
	if err != nil {
		return nil, err
	}
	return e.begin(ctx, c, "", s, host)
}
