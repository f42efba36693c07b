package mcptool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes"
)

const interruptTool = `{
	"name": "codex-interrupt",
	"title": "Codex Interrupt",
	"description": "Stop what a conversation does now. codex-reply continues it.",
	"inputSchema": {
		"type": "object",
		"required": ["threadId"],
		"properties": {"threadId": {"type": "string"}}
	},
	"annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}
}`

func callInterrupt(ctx context.Context, c *Call, raw json.RawMessage) *mcptypes.CallToolResult {
	var a replyArguments
	err := decodeArguments(raw, &a)
	if err != nil {
		return failure("", "codex-interrupt: "+err.Error())
	}
	id, err := a.thread()
	if err != nil {
		return failure("", "codex-interrupt: "+err.Error())
	}
	t := c.Threads.Find(id)
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
