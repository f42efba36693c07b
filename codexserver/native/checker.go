package native

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
)

// Check implements [engine.Checker].
func (c *conversation) Check(ctx context.Context, l engine.Line) (why string, err error) {
	c.use.Lock()
	defer c.use.Unlock()
	if err := c.engine.claim(c.saved.file); err != nil { // another server has it
		return err.Error(), nil
	}
	defer c.release()
	if l.SetUp { // no turn has begun, and a process that continues this one needs its policies
		c.checkWrite(c.saved.file.TurnContext(c.now))
		c.checkWrite(c.saved.file.Durable())
	}
	return c.box.Turn(tool.Context{
		Cwd: c.now.Cwd, ApprovalPolicy: c.now.ApprovalPolicy, SandboxPolicy: c.now.SandboxPolicy, Host: c.host,
	}).Check(ctx, l)
}
