package sandbox

import (
	"os/exec"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
)

// Order returns the order that starts a command confined. It implements
// [proc.Confinement].
func (c *Confinement) Order(cmd *exec.Cmd) (proc.Order, error) {
	if len(c.helper) > 0 {
		return proc.Order{Cmd: cmd}, c.useHelper(cmd)
	}
	return c.order(cmd)
}
