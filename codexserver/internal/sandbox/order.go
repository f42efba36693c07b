package sandbox

import (
	"os/exec"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
)

// Order returns what a keeper needs to start a command confined. It implements
// [command.Orderer].
func (c *Confinement) Order(cmd *exec.Cmd) (proc.Order, error) {
	if len(c.helper) > 0 {
		return proc.Order{Cmd: cmd}, c.useHelper(cmd)
	}
	return c.order(cmd)
}
