package box

import (
	"os/exec"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// Order returns the order that starts a command confined. It implements
// [run.Confinement].
func (c *Confinement) Order(cmd *exec.Cmd) (run.Order, error) {
	if len(c.helper) > 0 {
		return run.Order{Cmd: cmd}, c.useHelper(cmd)
	}
	return c.order(cmd)
}
