package sandbox

import (
	"os/exec"

	"github.com/codexmcp/codexmcp/codexserver/internal/keeper"
)

// Order returns what a keeper needs to start a command confined. It implements
// [command.Orderer].
func (c *Confinement) Order(cmd *exec.Cmd) (keeper.Order, error) {
	if len(c.helper) > 0 {
		return keeper.Order{Cmd: cmd}, c.useHelper(cmd)
	}
	return c.order(cmd)
}
