package mcptool

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/worktree"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
)

// codexTool starts a conversation. Names, types and enums are those of Codex's
// servers of September 2025 and September 2026 together, the descriptions are
// ours.
const codexTool = `{
	"name": "codex",
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
			"worktree": {"type": "boolean", "description": "Work in a new git worktree at HEAD of cwd's repository, apart from your files; codex-worktree brings the changes back."},
			"uncommitted": {"type": "boolean", "description": "Take uncommitted changes into the worktree."},
			` + budgetProperty + `,
			"effort": {"type": "string", "description": "How much the model reasons; codex-models lists the words."},
			"output-schema": {"type": "object", "description": "JSON schema of the answer, which the result then has as output."},
			"images": {"type": "array", "items": {"type": "string"}, "description": "Shown to the model: paths or data URLs of PNG, JPEG, GIF or WebP."},
			"web-search": {"type": "boolean", "description": "Let Codex search the web."},
			"writable-roots": {"type": "array", "items": {"type": "string"}, "description": "Folders where commands may write besides cwd, with sandbox workspace-write."},
			"background": {"type": "boolean", "description": "Answer at once; codex-wait has the result."}
		}
	},
	"outputSchema": ` + report.Schema + `,
	"annotations": ` + annotations + `
}`

type codexArguments struct {
	Prompt           *string                       `json:"prompt"`
	Cwd              string                        `json:"cwd"`
	Model            string                        `json:"model"`
	Profile          string                        `json:"profile"`
	ApprovalPolicy   *protocol.ApprovalPolicy      `json:"approval-policy"`
	Sandbox          *protocol.SandboxMode         `json:"sandbox"`
	Config           map[string]stdjson.RawMessage `json:"config"`
	BaseInstructions *string                       `json:"base-instructions"`
	IncludePlanTool  *bool                         `json:"include-plan-tool"`

	DeveloperInstructions *string `json:"developer-instructions"`
	CompactPrompt         *string `json:"compact-prompt"`

	Worktree    bool `json:"worktree"`
	Uncommitted bool `json:"uncommitted"`

	turnArguments
	WebSearch     *bool    `json:"web-search"`
	WritableRoots []string `json:"writable-roots"`

	Background bool `json:"background"`
}

func (a *codexArguments) check() error {
	if a.Prompt == nil {
		return errNoPrompt
	}
	if err := a.checkTurn(); err != nil {
		return err
	}
	if err := a.checkRoots(); err != nil {
		return err
	}
	if a.Uncommitted && !a.Worktree {
		return errors.New("argument /uncommitted: it takes changes into a worktree, and /worktree is not true")
	}
	if err := oneOf("approval-policy", a.ApprovalPolicy, protocol.ApprovalPolicies()); err != nil {
		return err
	}
	return oneOf("sandbox", a.Sandbox, protocol.SandboxModes())
}

// oneOf refuses a word that the argument does not allow, including the empty word. Nil is a
// missing argument.
func oneOf[W ~string](argument string, word *W, words []W) error {
	if word == nil || slices.Contains(words, *word) {
		return nil
	}
	return fmt.Errorf("argument /%s: %q must be one of %q", argument, string(*word), words)
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

var errNoPrompt = errors.New("argument /prompt is missing")

func (t *Table) callCodex(ctx context.Context, c *Call, raw stdjson.RawMessage) *mcptypes.CallToolResult {
	var a codexArguments
	err := decodeArguments(raw, &a)
	if err == nil {
		err = unlocked(raw, t.locked["codex"])
	}
	if err == nil {
		err = checkNames(raw)
	}
	if err == nil {
		err = a.check()
	}
	if err != nil {
		return failure("", "codex: "+err.Error())
	}
	cwd, err := c.workingFolder(ctx, a.Cwd)
	if err != nil {
		return failure("", "codex: argument /cwd: "+err.Error())
	}
	in, err := a.input(*a.Prompt, cwd, t.bounds)
	if err != nil {
		return failure("", "codex: "+err.Error())
	}
	roots, err := t.bounds.all("writable-roots", absolute(cwd, a.WritableRoots))
	if err != nil {
		return failure("", "codex: "+err.Error())
	}
	in.Effort = "" // it belongs to the conversation, see cfg
	cfg := protocol.Config{
		Effort: a.Effort, WebSearch: a.WebSearch, WritableRoots: roots,
		Model: a.Model, Profile: a.Profile, Cwd: cwd,
		Overrides: a.Config, BaseInstructions: a.BaseInstructions, IncludePlanTool: a.IncludePlanTool,
		DeveloperInstructions: a.DeveloperInstructions, CompactPrompt: a.CompactPrompt,
	}
	if a.ApprovalPolicy != nil {
		cfg.ApprovalPolicy = *a.ApprovalPolicy
	}
	if a.Sandbox != nil {
		cfg.Sandbox = *a.Sandbox
	}
	warnings, err := t.restrict(&cfg, a.Worktree)
	if err != nil {
		return failure("", "codex: "+err.Error())
	}
	job := c.newJob(c.attendance(a.Background))
	job.meter.budget = a.Budget
	job.attendance.Submission = c.ID
	var tree *worktree.Worktree
	if a.Worktree {
		var words string
		if err := t.bounds.repository(cwd); err != nil {
			return failure("", "codex: argument /cwd: "+err.Error())
		}
		if tree, words, err = t.worktrees.create(ctx, cwd, a.Uncommitted); err != nil {
			return failure("", "codex: argument /worktree: "+err.Error())
		}
		job.remark(words)
		place(&cfg, tree)
	}
	conversation, err := c.Threads.Start(ctx, cfg, job.attendance)
	if err == nil && tree != nil {
		err = bind(ctx, c, tree, conversation)
	}
	if err != nil {
		return notBegun(ctx, "codex", "", errors.Join(err, drop(ctx, tree)))
	}
	for _, w := range warnings {
		job.remark(w)
		conversation.Warn(c.ID, w)
	}
	job.schema = a.schema
	return c.run(ctx, job, conversation, in, a.Background)
}

// attendance returns the attendance of a turn of the call.
func (c *Call) attendance(background bool) thread.Attendance {
	if background {
		return c.Background
	}
	return c.Attendance
}

// workingFolder makes a call's cwd absolute. A missing one is [Call.Folder]. With bounds it
// returns the real path.
func (c *Call) workingFolder(ctx context.Context, cwd string) (string, error) {
	if cwd == "" {
		cwd = c.Folder(ctx)
	}
	cwd, err := filepath.Abs(cwd)
	if err != nil {
		return "", err
	}
	cwd, _, err = c.bounds.resolve(cwd)
	return cwd, err
}
