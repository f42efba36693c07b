//go:build !darwin && (!linux || !(amd64 || arm64))

package box

import (
	"os/exec"
	"runtime"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

func lacks() error {
	return unavailable("%s/%s has no implementation", runtime.GOOS, runtime.GOARCH)
}

type rules struct{}

func (c *Confinement) compile() error { return lacks() }

func (c *Confinement) apply(*exec.Cmd) (string, error) { return "", lacks() }

func (c *Confinement) run(func() error, bool) error { return lacks() }

// Main is [run.Main], which starts commands unconfined.
func Main() { run.Main(nil) }

// HideProcess does nothing on this system.
func HideProcess() error { return nil }
