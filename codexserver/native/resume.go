package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/threadfile"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Find implements [engine.Resumer].
func (e *Engine) Find(ctx context.Context, id string) (engine.Saved, error) {
	path, err := rollout.Find(ctx, e.options.CodexHome, id)
	if errors.Is(err, fs.ErrNotExist) {
		return engine.Saved{}, fmt.Errorf("conversation %s: %w", id, engine.ErrNotFound)
	}
	return engine.Saved{ID: id, File: path}, err
}

// Resume continues a conversation in its file. The calls of a turn that was cut off have no
// output there: each request says so. The folder and the policies are those of the
// last turn, unless cfg sets others. Resume fails with a [*engine.RefusedError] while
// another server runs a turn of the conversation.
func (e *Engine) Resume(
	ctx context.Context, s engine.Saved, cfg protocol.Config, host engine.Host,
) (engine.Conversation, error) {
	leave, err := e.starts.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	file := rollout.At(s.File, e.options.Store)
	if err := e.claim(file); err != nil {
		return nil, &engine.RefusedError{Err: err}
	}
	var old *rollout.Rollout
	err = file.Take(func() error {
		old, err = load(s.File)
		return err
	})
	if err != nil {
		return nil, errors.Join(missing(s.File, err), file.Release())
	}
	c, err := e.reopen(ctx, old, cfg, host)
	if err != nil {
		return nil, errors.Join(err, file.Release())
	}
	c.saved.file = file
	defer c.release()
	c.introduce(old)
	c.checkWrite(file.Sync())
	return c, nil
}

// load reads a rollout.
func load(path string) (*rollout.Rollout, error) {
	r, err := rollout.Load(path)
	return r, missing(path, err)
}

// missing returns an error of a rollout's file. One that is not there is a conversation that is not found.
func missing(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", path, engine.ErrNotFound)
	}
	return err
}

// reopen makes a conversation with the history of a rollout, without its file.
func (e *Engine) reopen(
	ctx context.Context, old *rollout.Rollout, call protocol.Config, host engine.Host,
) (*conversation, error) {
	if call.Cwd == "" {
		call.Cwd = old.Meta.Cwd
	}
	if call.Continues {
		if last := old.Context; last != nil && call.Model == "" {
			call.Model = last.Model
		}
	}
	kept, err := e.choices.Get(old.Meta.ID, old.Meta.Kept)
	if err != nil {
		return nil, &engine.RefusedError{Err: err}
	}
	search := kept.Wish(&call)
	cfg, err := e.configFor(ctx, call)
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	if call.ReadOnly {
		readOnly(cfg)
	}
	c, err := e.conversation(cfg, host, old.Meta)
	if err != nil {
		return nil, err
	}
	if old.Meta.Instructions != nil {
		c.prompts.rules = *old.Meta.Instructions
	}
	if err := c.restore(old, &call, kept, search); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.confine()
	c.remember(old)
	c.meter.usage = old.Usage
	return c, nil
}

// remember takes the history from a rollout. It replaces a beginning that was summarised, or
// that the rollout or the model has no room for, by the user's own words.
func (c *conversation) remember(old *rollout.Rollout) {
	items, said, summary, left := old.Items, userTexts(old.Before), old.Summary, old.Left
	if was := old.Meta.ModelProvider; was != "" && was != c.cfg.ModelProvider {
		items = portable(items) // Codex wrote them, with another provider
	}
	if left > 0 {
		n := c.newest(items)
		items, said, left = items[n:], append(said, userTexts(items[:n])...), left+n
		news := fmt.Sprintf("this conversation is too long: the model reads the last %d items of its history, and "+
			"what the user wrote last; %d items are left out", len(items), left)
		summary = strings.TrimSpace(summary + "\n\n[" + news + "]")
		c.tell(news)
	}
	if summary != "" {
		items = append(append(c.opening(), c.bridge(said, summary)), items...)
	}
	c.history.items = items
	if old.Skipped > 0 {
		c.engine.options.Logger.Warn("lines of the conversation's file could not be read", "conversation", old.Meta.ID,
			"lines", old.Skipped)
	}
}

// usualWindow is the context window, in tokens, of a model whose window is not known.
const usualWindow = 128_000

// newest returns where the newest items begin that take half of the model's window.
func (c *conversation) newest(items []protocol.ResponseItem) int {
	room := int64(usualWindow)
	if window := c.contextWindow(); window != nil {
		room = *window
	}
	room /= 2
	n := len(items)
	for n > 0 && room >= estimate(items[n-1]) {
		n--
		room -= estimate(items[n])
	}
	return n
}

// restore sets what earlier turns of a resumed conversation had, as today's Codex does, unless the call chooses
// otherwise. What goes beyond the configuration counts as far as the call keeps it. Search is the web search that is
// wished, or nil.
func (c *conversation) restore(
	old *rollout.Rollout, call *protocol.Config, kept *threadfile.Thread, search *bool,
) error {
	own, err := c.withoutCall()
	if err != nil {
		return err
	}
	chosen := func(keys ...string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(call.Overrides)), func(key string) bool {
			top, _, _ := strings.Cut(key, ".")
			return slices.Contains(keys, top)
		})
	}
	profile := call.Profile != "" || chosen("profile")
	policy := profile || call.ApprovalPolicy != "" || chosen("approval_policy")
	sandbox := profile || call.Sandbox != "" || chosen("sandbox_mode", "sandbox_workspace_write")
	base, searches := decide.Grant{Policy: c.now.ApprovalPolicy, Sandbox: c.now.SandboxPolicy}, c.cfg.Tools.WebSearch
	if last := old.Context; last != nil && !profile {
		if !policy && slices.Contains(protocol.ApprovalPolicies(), last.ApprovalPolicy) {
			c.now.ApprovalPolicy = last.ApprovalPolicy
		}
		switch mode := last.SandboxPolicy.Mode; {
		case sandbox || !slices.Contains(protocol.SandboxModes(), mode):
		case !c.cfg.Permitted.All():
			c.now.SandboxPolicy = last.SandboxPolicy // with its writable folders
		case mode == protocol.SandboxReadOnly: // of a profile that the configuration has now, a turn had less
			c.now.SandboxPolicy = last.SandboxPolicy
		}
	}
	chose := call.Choices
	if search != nil {
		chose.WebSearch = search
		_ = c.cfg.SearchWeb(*search) // it stays off when the configuration no longer allows it
	}
	had := decide.Grant{Policy: c.now.ApprovalPolicy, Sandbox: c.now.SandboxPolicy}
	if a := accessOf(c.now, c.cfg, own); !a.IsZero() && (call.Keep == nil || !call.Keep(a)) {
		had.Narrow(&base)
		c.cfg.Tools.WebSearch = c.cfg.Tools.WebSearch && searches
	}
	kept.Limit(&had, policy, sandbox)
	c.now.ApprovalPolicy, c.now.SandboxPolicy = had.Policy, had.Sandbox
	c.access = accessOf(c.now, c.cfg, own)
	c.chosen = c.choice(chose)
	var before protocol.Choices
	if kept != nil {
		if before = kept.Choices; !policy && !sandbox {
			c.chosen.Policy, c.chosen.Sandbox = kept.Policy, kept.Sandbox
		}
	}
	if !policy && !sandbox && chose == before {
		return nil
	}
	return c.engine.choices.Put(c.chosen)
}

// catchUp adds to the history what has changed since the rollout's last turn.
func (c *conversation) catchUp(old *rollout.Rollout) {
	c.addDeveloper()
	if c.history.sent = c.now; old.Context != nil {
		c.history.sent = *old.Context
	}
	c.inform()
}

// introduce adds changes to the history and sends the host the events of the past.
func (c *conversation) introduce(old *rollout.Rollout) {
	c.catchUp(old)
	configured := c.configured()
	if old.EventsLeft > 0 {
		first, err := protocol.AppendEvent(nil,
			protocol.BackgroundEvent{Message: fmt.Sprintf("%d older events are left out", old.EventsLeft)})
		if err == nil {
			configured.InitialMessages = append(configured.InitialMessages, first)
		}
	}
	for _, raw := range old.Events {
		configured.InitialMessages = append(configured.InitialMessages, json.RawMessage(raw))
	}
	c.emit(configured)
}
