package native

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
)

// Check implements [engine.Checker].
func (c *conversation) Check(ctx context.Context, id, line string, limit time.Duration) (why string, err error) {
	c.use.Lock()
	defer c.use.Unlock()
	if err := c.engine.claim(c.saved.file); err != nil { // another server has it
		return err.Error(), nil
	}
	defer c.release()
	return c.box.Turn(tool.Context{
		Cwd: c.now.Cwd, ApprovalPolicy: c.now.ApprovalPolicy, SandboxPolicy: c.now.SandboxPolicy, Host: c.host,
	}).Check(ctx, id, line, limit)
}
