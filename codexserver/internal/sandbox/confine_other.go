//go:build !darwin && (!linux || !(amd64 || arm64))

package sandbox

import (
	"os/exec"
	"runtime"
)

func (Tier) lacks() error {
	return unavailable("%s/%s has no implementation", runtime.GOOS, runtime.GOARCH)
}

type (
	rules   struct{}
	filters struct{}
)

func (c *Confinement) compile() error { return c.tier.lacks() }

func (c *Confinement) protectNested() error { return nil }

func (c *Confinement) start(*exec.Cmd) error { return c.tier.lacks() }

// Do fails: this system cannot confine f.
func (c *Confinement) Do(func() error) error { return c.tier.lacks() }

// Main does nothing on this system.
func Main() {}
