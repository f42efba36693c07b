package codexserver

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// codexTool starts a conversation. Names, types and enums are the wire of
// September 2025, the descriptions are ours.
const codexTool = `{
	"name": "codex",
	"title": "Codex",
	"description": "Hand a coding task to Codex in a new conversation. It works in the folder cwd, asks for approval where the approval policy says so, and answers when it is done. The result's threadId lets codex-reply go on.",
	"inputSchema": {
		"type": "object",
		"required": ["prompt"],
		"properties": {
			"prompt": {"type": "string", "description": "The task, in plain words."},
			"cwd": {"type": "string", "description": "Folder to work in. A relative path starts at the server's own folder, which is also the default."},
			"model": {"type": "string", "description": "Model to use instead of the configured one."},
			"profile": {"type": "string", "description": "Profile of config.toml to start from."},
			"approval-policy": {"type": "string", "enum": ["untrusted", "on-failure", "on-request", "never"], "description": "When to ask before a command runs: untrusted asks unless it is known to be safe, on-failure when the sandbox denied it, on-request when the model wants to leave the sandbox, never not at all."},
			"sandbox": {"type": "string", "enum": ["read-only", "workspace-write", "danger-full-access"], "description": "What commands may touch."},
			"config": {"type": "object", "additionalProperties": true, "description": "Keys of config.toml to override, dotted or nested."},
			"base-instructions": {"type": "string", "description": "Instructions for the model in place of the built-in ones."},
			"include-plan-tool": {"type": "boolean", "description": "Let the model keep a plan that the events show."}
		}
	},
	"outputSchema": ` + outputSchema + `,
	"annotations": ` + toolAnnotations + `
}`

type codexArguments struct {
	Prompt           *string                    `json:"prompt"`
	Cwd              string                     `json:"cwd"`
	Model            string                     `json:"model"`
	Profile          string                     `json:"profile"`
	ApprovalPolicy   protocol.ApprovalPolicy    `json:"approval-policy"`
	Sandbox          protocol.SandboxMode       `json:"sandbox"`
	Config           map[string]json.RawMessage `json:"config"`
	BaseInstructions *string                    `json:"base-instructions"`
	IncludePlanTool  *bool                      `json:"include-plan-tool"`
}

func (a *codexArguments) check() error {
	if a.Prompt == nil {
		return errNoPrompt
	}
	if err := oneOf("approval-policy", a.ApprovalPolicy, protocol.ApprovalPolicies()); err != nil {
		return err
	}
	return oneOf("sandbox", a.Sandbox, protocol.SandboxModes())
}

var errNoPrompt = fmt.Errorf("argument /prompt is missing")

// oneOf checks an optional enum.
func oneOf[S ~string](name string, got S, words []S) error {
	if got == "" || slices.Contains(words, got) {
		return nil
	}
	return fmt.Errorf("argument /%s: %q is none of %q", name, string(got), words)
}

func (ss *session) callCodex(ctx context.Context, c *call, raw json.RawMessage) *mcptypes.CallToolResult {
	var a codexArguments
	err := decodeArguments(raw, &a)
	if err == nil {
		err = a.check()
	}
	if err != nil {
		return toolError("", "codex: "+err.Error())
	}
	cwd, err := filepath.Abs(a.Cwd)
	if err != nil {
		return toolError("", "codex: argument /cwd: "+err.Error())
	}
	c.event = c.id()
	conv, err := ss.start(ctx, c, protocol.Config{
		Model: a.Model, Profile: a.Profile, Cwd: cwd,
		ApprovalPolicy: a.ApprovalPolicy, Sandbox: a.Sandbox,
		Overrides: a.Config, BaseInstructions: a.BaseInstructions, IncludePlanTool: a.IncludePlanTool,
	})
	if err != nil {
		return toolError("", "codex: "+err.Error())
	}
	err = conv.run(ctx, c, protocol.TurnInput{Items: protocol.TextInput(*a.Prompt)})
	return c.result(conv.ID(), err)
}

// start begins a conversation whose first events go to c.
func (ss *session) start(ctx context.Context, c *call, cfg protocol.Config) (*conversation, error) {
	h := &host{session: ss, call: c}
	ec, err := ss.server.engine.Start(ctx, cfg, h)
	if err != nil {
		return nil, err
	}
	conv := &conversation{Conversation: ec, host: h, turn: make(chan struct{}, 1)}
	if err := ss.conversations.add(conv); err != nil {
		ec.Close()
		return nil, err
	}
	return conv, nil
}
