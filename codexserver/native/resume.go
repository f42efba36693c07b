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
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// FindRollout returns the rollout of a conversation.
func (e *Engine) FindRollout(ctx context.Context, conversationID string) (string, error) {
	path, err := rollout.Find(ctx, e.home, conversationID)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("conversation %s: %w", conversationID, engine.ErrNotFound)
	}
	return path, err
}

// Resume continues the conversation of a rollout, in the same file. A turn that was cut
// off is closed: its calls without an answer are answered as unfinished. It continues in
// its own folder, and asks and is confined as in its last turn, unless cfg says
// otherwise. A conversation in which another server is running a turn is a
// [*engine.RefusedError].
func (e *Engine) Resume(ctx context.Context, rolloutPath string, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	leave, err := e.starts.take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	release, err := e.claim(rolloutPath)
	if err != nil {
		return nil, &engine.RefusedError{Err: err}
	}
	defer release()
	old, err := load(rolloutPath)
	if err != nil {
		return nil, err
	}
	c, err := e.reopen(old, cfg, host)
	if err != nil {
		return nil, err
	}
	if c.file, err = rollout.Open(rolloutPath); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.introduce(old)
	c.ready()
	return c, nil
}

func load(path string) (*rollout.Rollout, error) {
	r, err := rollout.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, engine.ErrNotFound)
	}
	return r, err
}

// reopen makes a conversation that has a rollout's history and no file yet.
func (e *Engine) reopen(old *rollout.Rollout, call protocol.Config, host engine.Host) (*conversation, error) {
	if call.Cwd == "" {
		call.Cwd = old.Meta.Cwd
	}
	cfg, err := e.config(call)
	if err == nil {
		err = e.addRoots(cfg, &call)
	}
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	if call.ReadOnly {
		readOnly(cfg)
	}
	c, err := e.conversation(cfg, host, old.Meta.ID)
	if err != nil {
		return nil, err
	}
	if old.Meta.Instructions != nil {
		c.rules = *old.Meta.Instructions
	}
	c.meta = old.Meta
	c.goOn(old.Context, &call)
	c.restorePrompts(&old.Meta, &call)
	c.restoreChoices(old, &call)
	c.readOnly = call.ReadOnly
	c.confine()
	c.remember(old)
	c.usage = old.Usage
	return c, nil
}

// remember takes the history from a rollout.
func (c *conversation) remember(old *rollout.Rollout) {
	items := old.Items
	if old.Summary != "" {
		items = append(append(c.opening(), bridge(userTexts(old.Before), old.Summary)), items...)
	}
	c.history = valid(items)
	if old.Skipped > 0 {
		c.engine.log.Warn("lines of the conversation's file could not be read", "conversation", old.Meta.ID, "lines", old.Skipped)
	}
}

// goOn sets a conversation's approval policy and sandbox policy to those of its last
// turn, as today's Codex does, unless the call chooses others.
func (c *conversation) goOn(last *protocol.TurnContext, call *protocol.Config) {
	if last == nil || call.Profile != "" {
		return
	}
	if call.ApprovalPolicy == "" && !chooses(call, "approval_policy", "profile") && slices.Contains(protocol.ApprovalPolicies(), last.ApprovalPolicy) &&
		(!call.Bounded || last.ApprovalPolicy == protocol.ApprovalUntrusted) {
		c.now.ApprovalPolicy = last.ApprovalPolicy
	}
	if call.Sandbox == "" && len(call.WritableRoots) == 0 && !chooses(call, "sandbox_mode", "sandbox_workspace_write", "profile") && slices.Contains(protocol.SandboxModes(), last.SandboxPolicy.Mode) &&
		(!call.Bounded || width(last.SandboxPolicy.Mode) < width(c.now.SandboxPolicy.Mode)) {
		if call.Worktree == nil || last.SandboxPolicy.Mode != protocol.SandboxWorkspaceWrite {
			c.now.SandboxPolicy = last.SandboxPolicy
			return
		}
		network := last.SandboxPolicy.NetworkAccess
		c.cfg.SandboxMode = protocol.SandboxWorkspaceWrite
		c.now.SandboxPolicy = c.cfg.Sandbox() // the worktree's
		c.now.SandboxPolicy.NetworkAccess = network
	}
}

// width orders the sandbox modes by what they allow.
func width(m protocol.SandboxMode) int {
	return slices.Index([]protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess}, m)
}

// chooses reports whether the call's own configuration has one of these keys.
func chooses(call *protocol.Config, keys ...string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(call.Overrides)), func(key string) bool {
		top, _, _ := strings.Cut(key, ".")
		return slices.Contains(keys, top)
	})
}

// catchUp informs the model of what differs from a rollout.
func (c *conversation) catchUp(old *rollout.Rollout) {
	c.addDeveloper()
	if c.told = c.now; old.Context != nil {
		c.told = *old.Context
	}
	c.inform()
}

// introduce sends the model what has changed and the host what was said.
func (c *conversation) introduce(old *rollout.Rollout) {
	c.catchUp(old)
	configured := c.configured()
	for _, raw := range old.Events {
		configured.InitialMessages = append(configured.InitialMessages, c.past(json.RawMessage(raw)))
	}
	c.emit(configured)
}

// past is an event of the past in the form for clients: on the Chat wire it leaves out
// the tokens of earlier responses.
func (c *conversation) past(raw json.RawMessage) json.RawMessage {
	m, err := protocol.ParseEvent(raw)
	count, ok := m.(protocol.TokenCount)
	if err != nil || !ok || !c.chat() {
		return raw
	}
	count.Info = nil
	if told, err := protocol.AppendEvent(nil, count); err == nil {
		return told
	}
	return raw
}
