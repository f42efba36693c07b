//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"errors"
	"os/exec"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
)

func (*Confinement) order(*exec.Cmd) (proc.Order, error) {
	return proc.Order{}, errors.ErrUnsupported
}

// CanKeep reports that there are no keepers.
func CanKeep() bool { return false }

// HideProcess does nothing on this system.
func HideProcess() error { return nil }
