//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"os/exec"
	"runtime"

	"github.com/codexmcp/codexmcp/codexserver/internal/keeper"
)

func (Tier) lacks() error {
	return unavailable("none is known for %s/%s", runtime.GOOS, runtime.GOARCH)
}

type rules struct{}

func (c *Confinement) compile() error { return c.tier.lacks() }

func (c *Confinement) start(*exec.Cmd) error { return c.tier.lacks() }

// Do fails: there is nothing to run f confined with.
func (c *Confinement) Do(func() error) error { return c.tier.lacks() }

func (c *Confinement) order(*exec.Cmd) (keeper.Order, error) { return keeper.Order{}, c.tier.lacks() }

// CanKeep reports that there are no keepers.
func CanKeep() bool { return false }

// HideProcess does nothing on this system.
func HideProcess() error { return nil }

// Main does nothing on this system.
func Main() {}
