package tools

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes"
)

var interruptTool = define[interruptArguments](tool{
	name: "codex-interrupt", short: true, open: true, purpose: "stop what a conversation does now.",
	definition: `{
	"name": "codex-interrupt",
	"title": "Codex Interrupt",
	"description": "Stop what a conversation does now. codex-reply continues it.",
	"inputSchema": {
		"type": "object",
		"required": ["threadId"],
		"properties": {"threadId": {"type": "string"}}
	},
	"annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}
}`,
})

type interruptArguments struct{ names }

// run implements [arguments].
func (a *interruptArguments) run(ctx context.Context, c *call) *mcptypes.CallToolResult {
	id, err := a.thread()
	if err != nil {
		return failure("", "codex-interrupt: "+err.Error())
	}
	t := c.open(id)
	if t == nil {
		return failure(id, fmt.Sprintf("codex-interrupt: no conversation %q in this session", id))
	}
	ran, err := t.Interrupt(ctx)
	switch {
	case err != nil:
		return failure(id, "codex-interrupt: "+err.Error())
	case !ran:
		return result(id, "Nothing was running.")
	}
	return result(id, "Interrupted.")
}
