package tools

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes"
)

//go:embed interrupt.json
var interruptTool string

func callInterrupt(ctx context.Context, c *call, a *names) *mcptypes.CallToolResult {
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
