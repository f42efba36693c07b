package tools

import (
	"context"
	"errors"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// codexTool starts a conversation. Names, types and enums are those of Codex's
// servers of September 2025 and September 2026 together, the descriptions are
// ours.
var codexTool = &tool{
	name: "codex", title: "Codex", turn: true, hints: &works,
	description: "Hand a coding task to Codex, an agent that works in the folder cwd and answers when it is done. " +
		"This begins a new conversation; to continue it, call codex-reply with the threadId of the result.",
	purpose: "hand over a task. Say what is to be done, where (cwd), and how to check it; " +
		"the answer comes when it is done. " +
		"With background it comes at once, for tasks that take longer than a call may.",
	arguments: func() arguments { return new(codexArguments) },
	result: func() *schema {
		return resultOf[protocol.TurnResult](func(name string, _ *schema) bool { return !ofReview(name) })
	},
}

// ofReview reports whether a member of a result is that of a review.
func ofReview(name string) bool {
	return slices.Contains([]string{"outcome", "why", "findings", "verdict"}, name)
}

type codexArguments struct {
	Prompt         string                  `json:"prompt" required:"true" about:"The task, in plain words; Codex sees nothing else."`
	Cwd            string                  `json:"cwd" about:"Folder to work in, an absolute path. Default: the client's first root, else the server's folder."`
	Model          string                  `json:"model" about:"In place of the configured one."`
	Profile        string                  `json:"profile" about:"Profile of config.toml to use."`
	ApprovalPolicy protocol.ApprovalPolicy `json:"approval-policy" enum:"untrusted,on-failure,on-request,never" about:"When a person is asked about a command: untrusted: unless it is known to be safe; on-failure: when the sandbox stopped it; on-request: when Codex wants to leave the sandbox; never."`
	Sandbox        protocol.SandboxMode    `json:"sandbox" enum:"read-only,workspace-write,danger-full-access" about:"What commands may touch without asking."`
	Config         protocol.Overrides      `json:"config" about:"Keys of config.toml to override, dotted or nested: of the model, reasoning, sandbox, approval policy and tools. Most others are refused."`
	protocol.Choices
	Worktree bool `json:"worktree" about:"Work and commit in a new git worktree of cwd's repository, on a new branch at HEAD."`
	attemptsArguments
	turnArguments
	Background bool `json:"background" about:"Answer at once; codex-wait has the result."`
}

func (a *codexArguments) check() error {
	if err := a.turnArguments.check(); err != nil {
		return err
	}
	if err := a.attemptsArguments.check(a.Model); err != nil {
		return err
	}
	return checkEffort(a.Effort)
}

func (a *codexArguments) run(ctx context.Context, c *Call) (*mcptypes.CallToolResult, error) {
	t := c.table
	cwd, err := c.workingFolder(ctx, a.Cwd)
	if err != nil {
		return nil, err
	}
	cfg := protocol.Config{
		Model: a.Model, Profile: a.Profile, Cwd: cwd, ApprovalPolicy: a.ApprovalPolicy, Sandbox: a.Sandbox,
		Overrides: a.Config, Choices: a.Choices,
	}
	warnings, err := t.Rules.Config(&cfg)
	if err != nil {
		return nil, err
	}
	var all []launch
	for i := range max(a.Attempts, 1) {
		l, err := a.start(ctx, c, cfg, i)
		if err != nil {
			l.leave()
			return nil, errors.Join(err, c.drop(ctx, all))
		}
		all = append(all, l)
	}
	attempts(all)
	for _, l := range all {
		for _, w := range warnings {
			l.Remark(w)
			l.thread.Warn(c.Awaited.Submission, w)
		}
	}
	return c.runAll(ctx, all[0], all[1:]...), nil
}
