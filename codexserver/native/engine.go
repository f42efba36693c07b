package native

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/auth"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/keeper"
	"github.com/codexmcp/codexmcp/codexserver/internal/recursion"
	"github.com/codexmcp/codexmcp/codexserver/internal/regularfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Options change what an [Engine] does. Nil is valid; the zero value of each
// field is its default.
type Options struct {
	// CodexHome is the folder of config.toml, AGENTS.md and the rollouts.
	// Default: $CODEX_HOME, or .codex in the user's home.
	CodexHome string
	// Overrides are configuration keys, dotted or nested, over config.toml; a
	// conversation's own configuration wins over them.
	Overrides map[string]any
	// Environ is the environment, NAME=value: what commands inherit and where
	// keys come from. Default: the process's.
	Environ []string
	// HTTPClient asks the providers; its Timeout must be 0. Default: a client
	// of the engine's own that follows the system's proxy and trusts, besides
	// the system's authorities, those of the PEM file that
	// CODEX_CA_CERTIFICATE names.
	HTTPClient *http.Client
	// Limits bound each turn.
	Limits Limits
	// Sandbox says how commands are confined.
	Sandbox Sandbox
	// Auth is where users sign in with ChatGPT. Default: users cannot sign in here, but
	// those who are signed in with the Codex CLI are here too.
	Auth Auth
	// Self is the program that serves the conversations. An MCP server of the
	// configuration that would start it is left out: it would be asked to start
	// itself. Default: none is.
	Self string
	// Version is the engine's version as providers and rollouts see it, "dev"
	// by default.
	Version string
	// Logger gets what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
}

// Sandbox says how commands are confined under the sandbox modes read-only and
// workspace-write. Where the system cannot confine as it should, commands
// are asked for, or refused under the policy never.
type Sandbox struct {
	// Tier is "thread" (the default: Landlock and seccomp) or "namespaces",
	// which also keeps .git read-only below writable folders and needs [Main]. On
	// macOS both are sandbox-exec; other systems have none.
	Tier string
	// Helper is a program with its arguments that confines instead. It is run
	// as HELPER… POLICY -- COMMAND…, POLICY being the JSON text of {"mode",
	// "writable_roots", "network_access", "cwd"}.
	Helper []string
	// Strict takes git off the list of commands that are known to be safe, since
	// a repository's configuration can make it start programs, and words that
	// the shell expands.
	Strict bool
}

// Limits bound one turn, and what a conversation holds between turns. A turn that
// reaches one of them fails and says which; the conversation stays usable.
type Limits struct {
	// ModelRequests is how often the model may be asked. 0 means 1,000, less
	// than 0 no limit.
	ModelRequests int
	// Tokens of all requests together, as the provider counts them. 0 or less
	// means no limit.
	Tokens int64
	// WallTime from start to end, approvals included. 0 or less means no limit.
	WallTime time.Duration
	// ResponseBytes of one response of the model. 0 means 64 MiB.
	ResponseBytes int64
	// ToolCalls in one response of the model. 0 means 128.
	ToolCalls int
	// Idle is how long a conversation keeps its history in memory, its MCP servers
	// running and what was approved for the session, when it is not used. Its next turn
	// reads its file and starts the servers again. 0 means an hour, a negative value
	// forever.
	Idle time.Duration
}

func (l Limits) resolved() Limits {
	if l.Idle == 0 {
		l.Idle = config.DefaultIdle
	}
	if l.ModelRequests == 0 {
		l.ModelRequests = config.DefaultModelRequests
	}
	if l.ResponseBytes <= 0 {
		l.ResponseBytes = config.DefaultResponseBytes
	}
	if l.ToolCalls <= 0 {
		l.ToolCalls = config.DefaultToolCalls
	}
	return l
}

// Engine runs conversations with models of OpenAI-compatible providers. It
// implements [engine.Engine] and is safe for concurrent use.
type Engine struct {
	home      string
	overrides map[string]any
	environ   []string
	http      *http.Client
	limits    Limits
	sandbox   Sandbox
	folders   *sandbox.Folders // of all conversations
	version   string
	log       *slog.Logger
	auth      *auth.Keeper
	keepers   *keeper.Pool // nil where there are none
	self      *recursion.Program
	locks     *rollout.Locks
	starts    slots // conversations that begin read files and run git
	requests  slots // each has a connection

	mu     sync.Mutex
	warned map[string]bool // warnings about the configuration that were already logged
}

// New makes an engine. A config.toml that cannot be read is an error that names
// the file and the line, or the key. A provider or profile that is missing is
// not: the conversation that needs it says so.
func New(o *Options) (*Engine, error) {
	if o == nil {
		o = &Options{}
	}
	e := &Engine{
		home:      o.CodexHome,
		overrides: o.Overrides,
		environ:   slices.Clone(o.Environ),
		http:      o.HTTPClient,
		limits:    o.Limits.resolved(),
		sandbox:   o.Sandbox,
		folders:   &sandbox.Folders{},
		version:   o.Version,
		log:       o.Logger,
		self:      recursion.New(o.Self),
	}
	if sandbox.CanKeep() {
		e.keepers = &keeper.Pool{}
	}
	if o.Environ == nil {
		e.environ = os.Environ()
	}
	if e.version == "" {
		e.version = "dev"
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.home == "" {
		home, err := config.Home(e.getenv)
		if err != nil {
			return nil, fmt.Errorf("native: %w", err)
		}
		e.home = home
	}
	if e.http == nil {
		client, err := httpClient(e.getenv("CODEX_CA_CERTIFICATE"))
		if err != nil {
			return nil, fmt.Errorf("native: %w", err)
		}
		e.http = client
	}
	limit := descriptors()
	e.starts, e.requests = newSlots(limit/64, 2, 64), newSlots(limit/3, 16, 4096)
	e.locks = rollout.NewLocks(e.home, "codex-mcp "+e.version)
	e.auth = auth.New(e.home, &auth.Options{
		Issuer:     o.Auth.Issuer,
		ClientID:   o.Auth.ClientID,
		Port:       o.Auth.Port,
		HTTPClient: e.http,
	})
	for _, key := range append(config.Unknown(e.home), config.UnknownOverrides(o.Overrides)...) {
		e.log.Warn("unknown key", "at", key)
	}
	cfg, err := e.config(protocol.Config{})
	if err == nil {
		e.warn(cfg.Notes...)
	}
	var missing *config.MissingError
	if err != nil && !errors.As(err, &missing) {
		return nil, fmt.Errorf("native: %w", err)
	}
	return e, nil
}

// maxCertificates bounds the file with certificates.
const maxCertificates = 16 << 20

// httpClient has no timeout of its own: streams last as long as they say something.
func httpClient(caFile string) (*http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 32
	if caFile != "" {
		pem, err := regularfile.Read(caFile, maxCertificates)
		if err != nil {
			return nil, fmt.Errorf("CODEX_CA_CERTIFICATE: %w", err)
		}
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CODEX_CA_CERTIFICATE: %s holds no certificate", caFile)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t}, nil
}

// Close frees the engine's connections, and ends commands and a sign-in that are
// under way. Its conversations are closed by those who started them.
func (e *Engine) Close() error {
	err := e.auth.Close()
	err = errors.Join(err, e.locks.Close())
	if e.keepers != nil {
		err = errors.Join(err, e.keepers.Close())
	}
	e.http.CloseIdleConnections()
	return err
}

// Start implements [engine.Engine].
func (e *Engine) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	leave, err := e.starts.take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	resolved, err := e.config(cfg)
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	if err := e.addRoots(resolved, &cfg); err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	e.warn(resolved.Notes...)
	if cfg.ReadOnly {
		readOnly(resolved)
	}
	return e.start(ctx, resolved, &cfg, host)
}

// warn logs each text once in the engine's life: the configuration is read again for each
// conversation.
func (e *Engine) warn(texts ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range texts {
		if e.warned[text] {
			continue
		}
		if e.warned == nil {
			e.warned = map[string]bool{}
		}
		e.warned[text] = true
		e.log.Warn(text)
	}
}

// config reads the configuration again: users edit it while the server runs.
func (e *Engine) config(call protocol.Config) (*config.Config, error) {
	return config.Load(config.Layers{
		Home:          e.home,
		Overrides:     e.overrides,
		Call:          call,
		OpenAIBaseURL: e.getenv("OPENAI_BASE_URL"),
	})
}

// getenv reads the engine's environment; of a repeated name the last counts.
func (e *Engine) getenv(name string) string {
	for _, entry := range slices.Backward(e.environ) {
		if k, v, ok := strings.Cut(entry, "="); ok && k == name && name != "" {
			return v
		}
	}
	return ""
}
