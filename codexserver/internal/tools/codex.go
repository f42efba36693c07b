package tools

import (
	"context"
	_ "embed"
	stdjson "encoding/json"
	"errors"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// codexTool starts a conversation. Names, types and enums are those of Codex's
// servers of September 2025 and September 2026 together, the descriptions are
// ours.
//
//go:embed codex.json
var codexTool string

type codexArguments struct {
	Prompt           string                        `json:"prompt"`
	Cwd              string                        `json:"cwd"`
	Model            string                        `json:"model"`
	Profile          string                        `json:"profile"`
	ApprovalPolicy   protocol.ApprovalPolicy       `json:"approval-policy"`
	Sandbox          protocol.SandboxMode          `json:"sandbox"`
	Config           map[string]stdjson.RawMessage `json:"config"`
	BaseInstructions *string                       `json:"base-instructions"`
	IncludePlanTool  *bool                         `json:"include-plan-tool"`

	DeveloperInstructions *string `json:"developer-instructions"`
	CompactPrompt         *string `json:"compact-prompt"`

	Worktree bool `json:"worktree"`

	turnArguments
	WebSearch *bool `json:"web-search"`

	Background bool `json:"background"`
}

func (a *codexArguments) check() error { return a.checkTurn() }

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

func (t *Table) callCodex(ctx context.Context, c *call, a *codexArguments) *mcptypes.CallToolResult {
	cwd, err := c.workingFolder(ctx, a.Cwd)
	if err != nil {
		return failure("", "codex: argument /cwd: "+err.Error())
	}
	in, err := a.input(a.Prompt, cwd, t.options.bounds())
	if err != nil {
		return failure("", "codex: "+err.Error())
	}
	in.Effort = "" // it belongs to the conversation, see cfg
	cfg := protocol.Config{
		Effort: a.Effort, WebSearch: a.WebSearch,
		Model: a.Model, Profile: a.Profile, Cwd: cwd, ApprovalPolicy: a.ApprovalPolicy, Sandbox: a.Sandbox,
		Overrides: a.Config, BaseInstructions: a.BaseInstructions, IncludePlanTool: a.IncludePlanTool,
		DeveloperInstructions: a.DeveloperInstructions, CompactPrompt: a.CompactPrompt,
	}
	warnings, err := t.restrict(&cfg)
	if err != nil {
		return failure("", "codex: "+err.Error())
	}
	job := c.newJob(c.attendance(a.Background))
	job.kept.Budget = a.Budget
	job.attendance.Submission = c.Awaited.Submission
	var tree *git.Worktree
	if a.Worktree {
		if tree, err = t.addWorktree(ctx, cwd); err != nil {
			return notBegun(ctx, "codex", "", err)
		}
		cfg.Cwd, job.kept.Worktree = tree.Cwd, &protocol.Worktree{Path: tree.Path, Branch: tree.Branch}
		job.log.Remark(inWorktree(tree))
	}
	conversation, err := c.Threads.Start(ctx, cfg, job.attendance)
	if err != nil {
		if tree != nil {
			err = errors.Join(err, tree.Remove(ctx))
		}
		return notBegun(ctx, "codex", "", err)
	}
	for _, w := range warnings {
		job.log.Remark(w)
		conversation.Warn(c.Awaited.Submission, w)
	}
	job.form.schema, job.kept.Schema = a.schema, jsontext.Value(a.OutputSchema)
	return c.run(ctx, job, conversation, in, a.Background)
}

// attendance returns who attends a turn of the call.
func (c *call) attendance(background bool) thread.Attend {
	if background {
		return c.Background
	}
	return c.Awaited
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
	cwd, _, err = c.table.options.bounds().resolve(cwd)
	if real, linked := filepath.EvalSymlinks(cwd); err == nil && linked == nil {
		cwd = real // so that no link on its way can lead elsewhere later
	}
	return cwd, err
}
