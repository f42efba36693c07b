//go:build amd64 || arm64

package box

import (
	"errors"
	"os"
	"os/exec"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/go-json-experiment/json"
)

// order is Order without a helper. It sends what determines the filter and, as a file,
// the Landlock ruleset.
func (c *Confinement) order(cmd *exec.Cmd) (run.Order, error) {
	key, err := json.Marshal(c.rules.filterKey)
	return run.Order{Cmd: cmd, Confinement: key, Files: []*os.File{c.rules.ruleset}}, err
}

// startOrdered starts a command in a launcher's process.
func startOrdered(cmd *exec.Cmd, confinement []byte, files []*os.File) error {
	if len(confinement) == 0 && len(files) == 0 {
		return cmd.Start()
	}
	if len(files) != 1 {
		return errors.New("sandbox: the order does not have one ruleset")
	}
	c := &Confinement{rules: rules{ruleset: files[0]}}
	if err := json.Unmarshal(confinement, &c.rules.filterKey); err != nil {
		return errors.New("sandbox: the order has no filter")
	}
	return c.onThread(c.commandFilter(), func() error {
		if err := installFilter(limitLock()); err != nil {
			return err
		}
		return cmd.Start()
	})
}
