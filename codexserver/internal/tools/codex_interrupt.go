package tools

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes"
)

var interruptTool = &tool{
	arguments: func() arguments { return new(interruptArguments) },
	name:      "codex-interrupt", short: true, open: true, purpose: "stop what a conversation does now.",
	definition: `{
	"title": "Codex Interrupt",
	"description": "Stop what a conversation does now. codex-reply continues it.",
	"inputSchema": {
		"type": "object",
		"required": ["threadId"],
		"properties": {"threadId": {"type": "string"}}
	},
	"annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}
}`,
}

type interruptArguments struct{ names }

func (a *interruptArguments) run(ctx context.Context, c *call) (_ *mcptypes.CallToolResult, err error) {
	if c.named, err = a.thread(); err != nil {
		return nil, err
	}
	t := c.open(c.named)
	if t == nil {
		return nil, fmt.Errorf("no conversation %q in this session", c.named)
	}
	ran, err := t.Interrupt(ctx)
	switch {
	case err != nil:
		return nil, err
	case !ran:
		return result(c.named, "Nothing was running."), nil
	}
	return result(c.named, "Interrupted."), nil
}
