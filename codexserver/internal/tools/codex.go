package tools

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
)

// codexTool starts a conversation. Names, types and enums are those of Codex's
// servers of September 2025 and September 2026 together, the descriptions are
// ours.
var codexTool = &tool{
	arguments: func() arguments { return new(codexArguments) },
	name:      "codex", output: turn.Schema, turn: true,
	purpose: "hand over a task. Say what is to be done, where (cwd), and how to check it; the answer comes when it is done. With background it comes at once, for tasks that take longer than a call may.",
	definition: `{
	"title": "Codex",
	"description": "Hand a coding task to Codex, an agent that works in the folder cwd and answers when it is done. This begins a new conversation; to continue it, call codex-reply with the threadId of the result.",
	"inputSchema": {
		"type": "object",
		"required": ["prompt"],
		"additionalProperties": false,
		"properties": {
			"prompt": {"type": "string", "description": "The task, in plain words; Codex sees nothing else."},
			"cwd": {"type": "string", "description": "Folder to work in, an absolute path. Default: the client's first root, else the server's folder."},
			"model": {"type": "string", "description": "In place of the configured one."},
			"profile": {"type": "string", "description": "Profile of config.toml to use."},
			"approval-policy": {"type": "string", "enum": ["untrusted", "on-failure", "on-request", "never"], "description": "When a person is asked about a command: untrusted: unless it is known to be safe; on-failure: when the sandbox stopped it; on-request: when Codex wants to leave the sandbox; never."},
			"sandbox": {"type": "string", "enum": ["read-only", "workspace-write", "danger-full-access"], "description": "What commands may touch without asking."},
			"config": {"type": "object", "additionalProperties": true, "description": "Keys of config.toml to override, dotted or nested: of the model, reasoning, sandbox, approval policy and tools. Most others are refused."},
			"base-instructions": {"type": "string", "description": "Replaces Codex's own instructions."},
			"developer-instructions": {"type": "string", "description": "A role or rules, in addition to Codex's own instructions."},
			"compact-prompt": {"type": "string", "description": "The prompt that summarises a long conversation."},
			"include-plan-tool": {"type": "boolean", "description": "Let Codex keep a plan, which the result has."},
			"worktree": {"type": "boolean", "description": "Work in a new git worktree of cwd's repository, on a new branch at HEAD. The result names both; use git for the rest."},
			"budget": {"type": "object", "additionalProperties": false, "properties": {"tokens": {"type": "integer"}, "minutes": {"type": "number"}}, "description": "Of this turn. It stops there with what it has; codex-reply continues."},
			"effort": {"type": "string", "description": "How much the model reasons; codex-models lists the words."},
			"output-schema": {"type": "object", "description": "JSON schema of the answer, which the result then has as output."},
			"images": {"type": "array", "items": {"type": "string"}, "description": "Shown to the model: paths or data URLs of PNG, JPEG, GIF or WebP."},
			"web-search": {"type": "boolean", "description": "Let Codex search the web."},
			"background": {"type": "boolean", "description": "Answer at once; codex-wait has the result."}
		}
	},
	"annotations": {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}
}`,
}

type codexArguments struct {
	turnArguments
	Prompt                string                        `json:"prompt"`
	Cwd                   string                        `json:"cwd"`
	Model                 string                        `json:"model"`
	Profile               string                        `json:"profile"`
	ApprovalPolicy        protocol.ApprovalPolicy       `json:"approval-policy"`
	Sandbox               protocol.SandboxMode          `json:"sandbox"`
	Config                map[string]stdjson.RawMessage `json:"config"`
	BaseInstructions      *string                       `json:"base-instructions"`
	DeveloperInstructions *string                       `json:"developer-instructions"`
	CompactPrompt         *string                       `json:"compact-prompt"`
	IncludePlanTool       *bool                         `json:"include-plan-tool"`
	Worktree              bool                          `json:"worktree"`
	WebSearch             *bool                         `json:"web-search"`
	Background            bool                          `json:"background"`
}

// check also refuses keys of config that choose what a locked argument chooses.
func (a *codexArguments) check(locked []string) error {
	return cmp.Or(a.checkTurn(), unlockedConfig(a.Config, locked))
}

// lockArguments removes arguments from the schema of a tool.
func lockArguments(t *mcptypes.Tool, names []string) error {
	if len(names) == 0 {
		return nil
	}
	var schema struct {
		Type                 string                        `json:"type"`
		Required             []string                      `json:"required"`
		AdditionalProperties *bool                         `json:"additionalProperties,omitzero"`
		Properties           map[string]stdjson.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(t.InputSchema, &schema); err != nil {
		return err
	}
	for _, name := range names {
		delete(schema.Properties, name)
	}
	var err error
	t.InputSchema, err = json.Marshal(schema, json.Deterministic(true))
	return err
}

func (a *codexArguments) run(ctx context.Context, c *call) (*mcptypes.CallToolResult, error) {
	t := c.table
	cwd, err := c.workingFolder(ctx, a.Cwd)
	if err != nil {
		return nil, fmt.Errorf("argument /cwd: %w", err)
	}
	turn := c.newTurn(a.Background)
	if err := a.begin(turn, a.Prompt, cwd); err != nil {
		return nil, err
	}
	turn.in.Effort = "" // it belongs to the conversation, see cfg
	cfg := protocol.Config{
		Effort: a.Effort, WebSearch: a.WebSearch,
		Model: a.Model, Profile: a.Profile, Cwd: cwd, ApprovalPolicy: a.ApprovalPolicy, Sandbox: a.Sandbox,
		Overrides: a.Config, BaseInstructions: a.BaseInstructions, IncludePlanTool: a.IncludePlanTool,
		DeveloperInstructions: a.DeveloperInstructions, CompactPrompt: a.CompactPrompt,
	}
	warnings, err := t.restrict(&cfg)
	if err != nil {
		return nil, err
	}
	turn.attend.Submission = c.Awaited.Submission
	var tree *git.Worktree
	if a.Worktree {
		if tree, err = t.addWorktree(ctx, cwd); err != nil {
			return nil, err
		}
		cfg.Cwd, turn.resume.Worktree = tree.Cwd, &protocol.Worktree{Path: show.Text(tree.Path, maxTree), Branch: show.Text(tree.Branch, maxName)}
		turn.log.Remark(fmt.Sprintf("The conversation works in the git worktree %s, on the new branch %s. Commit there what is to stay, with git.", tree.Path, tree.Branch))
	}
	if turn.thread, err = c.Threads.Start(ctx, cfg, turn.attend); err != nil {
		if tree != nil {
			err = errors.Join(err, tree.Remove(ctx))
		}
		return nil, err
	}
	for _, w := range warnings {
		turn.log.Remark(w)
		turn.thread.Warn(c.Awaited.Submission, w)
	}
	return c.run(ctx, turn), nil
}

// workingFolder makes a call's cwd absolute. A missing one is [Call.Folder]. With bounds it
// returns the real path.
func (c *call) workingFolder(ctx context.Context, cwd string) (string, error) {
	if cwd == "" {
		cwd = c.Folder(ctx)
	}
	cwd, err := engine.Abs(ctx, cwd)
	if err != nil {
		return "", err
	}
	cwd, _, err = c.table.bounds.resolve(cwd)
	if real, linked := filepath.EvalSymlinks(cwd); err == nil && linked == nil {
		cwd = real // so that no link on its way can lead elsewhere later
	}
	return cwd, err
}
