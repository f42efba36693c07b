package tools

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"runtime"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// codexTool starts a conversation. Names, types and enums are those of Codex's
// servers of September 2025 and September 2026 together, the descriptions are
// ours.
var codexTool = &tool{
	name: "codex", title: "Codex", turn: true, output: turn.Schema, hints: &works,
	description: "Hand a coding task to Codex, an agent that works in the folder cwd and answers when it is done. This begins a new conversation; to continue it, call codex-reply with the threadId of the result.",
	purpose:     "hand over a task. Say what is to be done, where (cwd), and how to check it; the answer comes when it is done. With background it comes at once, for tasks that take longer than a call may.",
	arguments:   func() arguments { return new(codexArguments) },
}

type codexArguments struct {
	Prompt                string                        `json:"prompt" required:"true" about:"The task, in plain words; Codex sees nothing else."`
	Cwd                   string                        `json:"cwd" about:"Folder to work in, an absolute path. Default: the client's first root, else the server's folder."`
	Model                 string                        `json:"model" about:"In place of the configured one."`
	Profile               string                        `json:"profile" about:"Profile of config.toml to use."`
	ApprovalPolicy        protocol.ApprovalPolicy       `json:"approval-policy" enum:"untrusted,on-failure,on-request,never" about:"When a person is asked about a command: untrusted: unless it is known to be safe; on-failure: when the sandbox stopped it; on-request: when Codex wants to leave the sandbox; never."`
	Sandbox               protocol.SandboxMode          `json:"sandbox" enum:"read-only,workspace-write,danger-full-access" about:"What commands may touch without asking."`
	Config                map[string]stdjson.RawMessage `json:"config" about:"Keys of config.toml to override, dotted or nested: of the model, reasoning, sandbox, approval policy and tools. Most others are refused."`
	BaseInstructions      *string                       `json:"base-instructions" about:"Replaces Codex's own instructions."`
	DeveloperInstructions *string                       `json:"developer-instructions" about:"A role or rules, in addition to Codex's own instructions."`
	CompactPrompt         *string                       `json:"compact-prompt" about:"The prompt that summarises a long conversation."`
	IncludePlanTool       *bool                         `json:"include-plan-tool" about:"Let Codex keep a plan, which the result has."`
	Worktree              bool                          `json:"worktree" about:"Work in a new git worktree of cwd's repository, on a new branch at HEAD. The result names both; use git for the rest."`
	turnArguments
	WebSearch  *bool `json:"web-search" about:"Let Codex search the web."`
	Background bool  `json:"background" about:"Answer at once; codex-wait has the result."`
}

// check also refuses keys of config that choose what a locked argument chooses.
func (a *codexArguments) check(locked []string) error {
	return cmp.Or(a.checkTurn(), unlockedConfig(a.Config, locked))
}

func (a *codexArguments) run(ctx context.Context, c *Call) (*mcptypes.CallToolResult, error) {
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
func (c *Call) workingFolder(ctx context.Context, cwd string) (string, error) {
	if cwd == "" {
		cwd = c.Folder(ctx)
	}
	cwd, err := engine.Abs(ctx, paths.Drive(runtime.GOOS, cwd))
	if err != nil {
		return "", err
	}
	cwd, _, err = c.table.bounds.resolve(cwd)
	if err != nil {
		return "", err
	}
	return paths.Real(cwd), nil // so that no link on its way can lead elsewhere later
}
