package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/hosts"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/internal/self"
	"github.com/codexmcp/codexmcp/codexserver/internal/threadfile"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/slots"
)

// Options change what an [Engine] does. Nil is valid; the zero value of each
// field is its default.
type Options struct {
	// CodexHome is the folder of config.toml, AGENTS.md and the rollouts.
	// Default: $CODEX_HOME, or .codex in the user's home.
	CodexHome string
	// Store keeps the conversations of CodexHome elsewhere, too: what a turn does waits until
	// it is recorded there. It must be that of the server. Default: they are only files.
	Store safefile.Mirror
	// Overrides are configuration keys, dotted or nested, that override
	// config.toml. A conversation's own configuration overrides them.
	Overrides map[string]any
	// Environ is the environment, NAME=value. Commands inherit it, and providers'
	// keys are read from it. Default: the process's.
	Environ []string
	// HTTPClient sends the requests to providers; its Timeout must be 0. Default:
	// a client that uses the system's proxy and trusts the system's authorities
	// and those in the PEM file that CODEX_CA_CERTIFICATE names.
	HTTPClient *http.Client
	// Limits bound each turn.
	Limits Limits
	// Sandbox says how commands are confined.
	Sandbox Sandbox
	// Ask lists beginnings of commands that a person is asked about each time, under every
	// policy: those of approval.Rules. Default: none.
	Ask [][]string
	// Hosts asks for each host of the network that a command in workspace-write wants to reach by HTTPS, on Linux, unless
	// the configuration gives the whole network. What rules say about hosts is in approval.Rules. By default such
	// commands have no network.
	Hosts bool
	// HostsTip is a sentence for questions about leaving the sandbox for the network where there could be Hosts: how to have
	// them. Default: none.
	HostsTip string
	// Tools are the tools that a model is offered beside the shell. Default:
	// [setting.ToolsAuto].
	Tools setting.Tools
	// Failover says where a turn goes on when its provider refuses. The providers are those of
	// config.toml; one that it lacks is left out with a warning. Default: the turn fails.
	Failover Failover
	// Guarded are files that this program writes, absolute paths. A folder that holds one
	// stays read-only for commands, unless the user's own configuration names that folder as
	// writable. Default: none.
	Guarded []string
	// Self is the program that serves the conversations. A configured MCP server
	// that would start this program again is left out, so that it does not start
	// itself without end. Default: all configured servers start.
	Self string
	// Version is the engine's version in requests and rollouts. Default: "dev".
	Version string
	// Logger receives messages for the operator. Default: nothing is logged.
	Logger *slog.Logger
}

// The types of settings that are tables of their own.
type (
	// Limits bound one turn, and what a conversation holds between turns.
	Limits = setting.Limits
	// Sandbox says how commands are confined.
	Sandbox = setting.Sandbox
	// Failover says who answers when a provider refuses.
	Failover = setting.Failover
	// FailoverTo is a provider with its model.
	FailoverTo = setting.FailoverTo
)

// Engine runs conversations with models of OpenAI-compatible providers. It
// implements [engine.Engine] and is safe for concurrent use.
type Engine struct {
	options Options // with their defaults

	programs  *box.Programs // shared by all conversations
	processes run.Starter
	self      *self.Program
	starts    slots.Slots  // bounds the starts of conversations, which read files and run git
	requests  slots.Slots  // bounds the requests, each with a connection
	turns     slots.Slots  // bounds the turns, each with an open rollout
	searches  slots.Slots  // bounds the searches for files, each of which may take a thread
	room      *slots.Limit // bounds what answers of models hold
	notify    []string
	proxy     *hosts.Proxy      // for Options.Hosts, else nil
	choices   *threadfile.Store // what later calls chose than the first, which the rollout has

	warned sync.Map // the texts of the warnings that were logged
}

// New makes an engine. It fails when main does not call [Main], and when config.toml cannot
// be read, with an error that names the file and the line, or the key. It does not fail for
// a missing provider or profile; the conversation that needs it does.
func New(o *Options) (*Engine, error) {
	if err := run.Ready(); err != nil {
		return nil, fmt.Errorf("native: %w", err)
	}
	if o == nil {
		o = &Options{}
	}
	if !slices.Contains([]setting.Tools{"", setting.ToolsAuto, setting.ToolsFiles, setting.ToolsCodex}, o.Tools) {
		return nil, fmt.Errorf("native: tools: %q is not auto, files or codex", o.Tools)
	}
	e := &Engine{options: *o, programs: &box.Programs{}, self: self.New(o.Self)}
	if err := e.resolve(); err != nil {
		return nil, err
	}
	if err := e.options.Failover.Validate(); err != nil {
		return nil, fmt.Errorf("native: failover.%w", err)
	}
	if o.Hosts && len(o.Sandbox.Helper) == 0 && box.HostsAvailable() == nil {
		e.proxy = hosts.New()
	}
	e.choices = threadfile.New(e.options.CodexHome, e.options.Store)
	limit := descriptors()
	e.starts, e.requests = make(slots.Slots, min(max(limit/64, 2), 64)), make(slots.Slots, min(max(limit/3, 16), 4096))
	e.turns = make(slots.Slots, min(max(limit/3, 16), 1<<16))
	e.searches = make(slots.Slots, 8)
	e.room = model.NewRoom()
	for _, key := range config.Unknown(e.options.CodexHome, e.options.Overrides, false) {
		e.options.Logger.Warn("unknown key", "at", key)
	}
	cfg, err := e.config(protocol.Config{})
	if err == nil {
		e.warn(cfg.Notes...)
		e.notify = cfg.Notify
	}
	if err != nil && !errors.Is(err, config.ErrMissing) {
		return nil, err
	}
	return e, nil
}

// Notify returns the program of config.toml's key notify and its arguments, as they were when the engine was made; nil
// for none. The engine does not run it.
func (e *Engine) Notify() []string { return e.notify }

// resolve gives the options that are not set their defaults, and keeps what the caller may change.
func (e *Engine) resolve() (err error) {
	o := &e.options
	o.Limits, o.Version = o.Limits.Resolved(), cmp.Or(o.Version, "dev")
	o.Environ, o.Guarded = slices.Clone(o.Environ), slices.Clone(o.Guarded)
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CodexHome == "" {
		if o.CodexHome, err = config.Home(e.getenv); err != nil {
			return err
		}
	}
	if o.HTTPClient == nil {
		o.HTTPClient, err = model.HTTPClient(e.getenv)
	}
	return err
}

// Close frees the engine's connections, and ends running commands. It does not close
// conversations; their callers do.
func (e *Engine) Close() error {
	err := e.processes.Close()
	e.options.HTTPClient.CloseIdleConnections()
	return err
}

// Start implements [engine.Engine].
func (e *Engine) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	leave, err := e.starts.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	resolved, err := e.configFor(ctx, cfg)
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	if err := config.CheckFolder(cfg.Cwd); err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	e.warn(resolved.Notes...)
	if cfg.ReadOnly {
		readOnly(resolved)
	}
	return e.start(ctx, resolved, &cfg, host)
}

// warn logs each text once in the engine's life, although the configuration is read for
// each conversation.
func (e *Engine) warn(texts ...string) {
	for _, text := range texts {
		if _, known := e.warned.LoadOrStore(text, true); !known {
			e.options.Logger.Warn(text)
		}
	}
}

// config reads the configuration, which users edit while the server runs.
func (e *Engine) config(call protocol.Config) (*config.Config, error) {
	cfg, err := config.Load(config.Layers{
		Home:          e.options.CodexHome,
		Overrides:     e.options.Overrides,
		Call:          call,
		OpenAIBaseURL: e.getenv("OPENAI_BASE_URL"),
	})
	if err == nil {
		err = cfg.Withhold("sandbox.deny_read", e.options.Sandbox.DenyRead)
	}
	if err == nil {
		err = (&box.Options{Helper: e.options.Sandbox.Helper}).Keeps(cfg.Permitted)
	}
	if err != nil {
		return nil, err
	}
	return cfg, nil
}

// hostsFor returns what connects the commands of a conversation to hosts, nil if nothing does.
func (e *Engine) hostsFor(cfg *config.Config) *hosts.Proxy {
	if e.proxy == nil && cfg.Permitted.Reaches() {
		return hosts.New()
	}
	return e.proxy
}

// configFor returns the configuration for a client's conversation or command.
func (e *Engine) configFor(ctx context.Context, call protocol.Config) (*config.Config, error) {
	cfg, err := e.config(call)
	if err != nil {
		return nil, err
	}
	cfg.Environ = e.options.Environ
	if o := engine.OriginOf(ctx); o != nil {
		cfg.Environ = o.Environ
	}
	return cfg, nil
}

// getenv reads the engine's environment. The last of several entries with a name counts.
func (e *Engine) getenv(name string) string {
	if name == "" { // no variable is meant
		return ""
	}
	return run.Value(e.options.Environ, name)
}
