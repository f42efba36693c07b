package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/threadfile"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/auth"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/uuid"
)

// originator is the engine's name in requests and rollouts.
const originator = "codex_mcp"

// conversation implements [engine.Conversation].
type conversation struct {
	engine *Engine
	cfg    *config.Config
	host   engine.Host
	box    *tool.Toolbox

	providers providers
	prompts   prompts
	now       protocol.TurnContext // the policies, folder and model of turns
	access    protocol.Access      // what its calls chose beyond the configuration
	chosen    *threadfile.Thread   // what is kept of what they chose

	history history
	meter   meter
	saved   saved
	work    work
	budget  budget // of the last turn

	inbox atomic.Pointer[inbox] // the running turn's; between turns the last one's

	use     sync.Mutex // held by a turn, and by work between turns
	running bool       // a turn runs, and no other server has the conversation
	news    []string   // messages for the user, sent at the next turn
}

// start begins a new conversation.
func (e *Engine) start(
	ctx context.Context, cfg *config.Config, call *protocol.Config, host engine.Host,
) (*conversation, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	choices := call.Noted(cfg.DeveloperInstructions)
	if told := choices.DeveloperInstructions; told != nil {
		cfg.DeveloperInstructions = *told
	}
	c, err := e.conversation(cfg, host, protocol.SessionMeta{ID: id.String()})
	if err != nil {
		return nil, err
	}
	c.chosen = c.choice(choices)
	if err = c.judge(call); err == nil {
		err = c.open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// open begins the conversation's file and history.
func (c *conversation) open(ctx context.Context) error {
	rules, warnings, err := userInstructions(c.cfg)
	if err != nil {
		return &engine.ConfigError{Err: err}
	}
	c.prompts.rules = rules
	begin, meta := time.Now(), &c.saved.meta
	meta.Timestamp, meta.Cwd = rollout.Timestamp(begin), c.cfg.Cwd
	meta.Originator, meta.CLIVersion = originator, c.engine.options.Version
	meta.Git = git.Head(ctx, c.cfg.Cwd, c.engine.scratch())
	if rules != "" {
		meta.Instructions = &rules
	}
	meta.Kept = new(c.chosen.Kept)
	meta.Kept.Names = protocol.Names{Profile: c.cfg.Profile, Provider: c.cfg.ModelProvider, Model: c.now.Model,
		Effort: c.now.Effort}
	c.saved.file, err = rollout.Create(rollout.Path(c.engine.options.CodexHome, meta.ID, begin), *meta,
		c.engine.options.Store)
	if err != nil {
		return err
	}
	defer c.release()
	c.record(c.opening()...)
	c.emit(c.configured())
	for _, warning := range warnings {
		c.emit(protocol.BackgroundEvent{Message: warning})
	}
	c.checkWrite(c.saved.file.Sync())
	return nil
}

// conversation makes a conversation without history or file.
func (e *Engine) conversation(cfg *config.Config, host engine.Host, meta protocol.SessionMeta) (*conversation, error) {
	if cfg.Cwd == "" {
		cwd, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		cfg.Cwd = cwd
	}
	e.programs.Given(cfg.Cwd)
	c := &conversation{
		engine:    e,
		cfg:       cfg,
		host:      host,
		providers: e.providers(cfg),
		saved:     saved{meta: meta},
	}
	c.box = tool.New(e.toolOptions(cfg, &c.work.left))
	text, err := instructions(cfg, e.fileTools(cfg), c.box.LineShell())
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	c.prompts = prompts{instructions: text, developer: cfg.DeveloperInstructions, compact: cfg.CompactPrompt}
	c.now = protocol.TurnContext{
		Cwd:            cfg.Cwd,
		ApprovalPolicy: cfg.ApprovalPolicy,
		SandboxPolicy:  cfg.Sandbox(),
		Model:          cfg.Model,
		Effort:         cfg.ReasoningEffort,
		Summary:        cmp.Or(cfg.ReasoningSummary, protocol.SummaryAuto),
	}
	c.history.sent = c.now
	c.work.life, c.work.end = context.WithCancel(context.Background())
	return c, nil
}

// client returns a client for a provider with that name.
func (e *Engine) client(name string, p config.Provider) *model.Client {
	return &model.Client{
		Provider:   p,
		Name:       name,
		HTTP:       e.options.HTTPClient,
		Getenv:     e.getenv,
		APIKey:     e.openAIKey,
		PrintKey:   e.keyPrinter(p.Auth),
		UserAgent:  fmt.Sprintf("codex-mcp/%s (%s; %s)", e.options.Version, runtime.GOOS, runtime.GOARCH),
		Originator: originator,
		MaxBytes:   e.options.Limits.ResponseBytes,
		Room:       e.room,
	}
}

func (c *conversation) configured() protocol.SessionConfigured {
	var roots []string
	if c.now.SandboxPolicy.Mode == protocol.SandboxWorkspaceWrite {
		roots = slices.Clone(c.now.SandboxPolicy.WritableRoots)
	}
	return protocol.SessionConfigured{
		SessionID:       c.ID(),
		Model:           c.now.Model,
		ModelProviderID: c.cfg.ModelProvider,
		ApprovalPolicy:  c.now.ApprovalPolicy,
		Cwd:             c.now.Cwd,
		ReasoningEffort: c.now.Effort,
		RolloutPath:     c.saved.file.Path(),
		Access:          c.access,
		WritableRoots:   roots,
	}
}

// openAIKey returns the key for providers that want OpenAI's.
func (e *Engine) openAIKey() (string, error) {
	if key := strings.TrimSpace(e.getenv("OPENAI_API_KEY")); key != "" {
		return key, nil
	}
	key, err := auth.APIKey(e.options.CodexHome)
	if err == nil && key == "" {
		err = errors.New("there is no key for OpenAI: set OPENAI_API_KEY, sign in with codex login, or set another " +
			"model_provider in config.toml")
	}
	return key, err
}

// shell returns the name of the user's shell, for the model; of one that lines run in if it is unknown.
func (c *conversation) shell() string {
	if sh := c.engine.getenv("SHELL"); sh != "" && runtime.GOOS != "windows" { // where Git's bash sets it
		return filepath.Base(sh)
	}
	return c.box.LineShell()[0]
}

// ID implements [engine.Conversation].
func (c *conversation) ID() string { return c.saved.meta.ID }

// Close implements [engine.Conversation].
func (c *conversation) Close() error {
	c.use.Lock()
	defer c.use.Unlock()
	c.work.stop(c.engine.options.Logger)
	err := c.box.Close()
	if c.saved.file != nil { // otherwise the start failed before there was one
		err = errors.Join(err, c.saved.file.Close())
	}
	return err
}

// record appends items to the history and to the rollout.
func (c *conversation) record(items ...protocol.ResponseItem) {
	c.history.items = append(c.history.items, items...)
	for _, item := range c.kept(items...) {
		c.checkWrite(c.saved.file.Item(item))
	}
}

// kept returns what the rollout has of items. What another provider than the configured one alone can
// read is not there, because the next process begins with the configured one.
func (c *conversation) kept(items ...protocol.ResponseItem) []protocol.ResponseItem {
	if c.away() {
		return portable(items)
	}
	return items
}

// emit reports an event of the turn.
func (c *conversation) emit(m protocol.EventMsg) { c.emitAs("", m) }

// emitAs reports an event of a submission that the engine made itself; "" means the
// turn's. It writes the events that matter to later readers to the rollout.
func (c *conversation) emitAs(submission string, m protocol.EventMsg) {
	switch m.(type) {
	case protocol.AgentMessage, protocol.AgentReasoning, protocol.AgentReasoningRawContent,
		protocol.TokenCount, protocol.ModelReroute:
		c.checkWrite(c.saved.file.Event(m))
	}
	c.host.EmitAs(submission, m)
}
