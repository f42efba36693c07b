//go:build !linux || !(amd64 || arm64)

package enclosure

import (
	"fmt"
	"os/exec"
)

// Main does nothing on this system.
func Main() {}

// Start fails on this system.
func (*Enclosure) Start(*exec.Cmd) error { return fmt.Errorf("%w: it needs Linux", ErrUnavailable) }

// Try fails on this system.
func Try(string) error { return (*Enclosure)(nil).Start(nil) }
