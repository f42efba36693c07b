package tools

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/mcptypes"
)

var interruptTool = &tool{
	name: "codex-interrupt", title: "Codex Interrupt", short: true, open: true,
	unsaid:      []string{"conversationId", "sessionId"},
	description: "Stop what a conversation does now. codex-reply continues it.",
	purpose:     "stop what a conversation does now.",
	hints: &mcptypes.ToolAnnotations{
		ReadOnlyHint: &no, DestructiveHint: &no, IdempotentHint: &yes, OpenWorldHint: &no,
	},
	arguments: func() arguments { return new(interruptArguments) },
}

type interruptArguments struct {
	ThreadID string `json:"threadId" required:"true"`
	oldNames
}

func (a *interruptArguments) run(ctx context.Context, c *Call) (_ *mcptypes.CallToolResult, err error) {
	if c.named, err = a.thread(a.ThreadID); err != nil {
		return nil, err
	}
	t := c.open(c.named)
	if t == nil {
		return nil, fmt.Errorf("no conversation %q in this session", c.named)
	}
	if first := c.Turns.of(c.named); first != nil && len(first.others) > 0 && !first.over() { // of several attempts
		first.Interrupt(thread.ErrInterrupted)
		select {
		case <-first.Done():
			return result(c.named, "Interrupted, with the other attempts."), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
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
