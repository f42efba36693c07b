//go:build !linux || !(amd64 || arm64)

package sandbox

import "os/exec"

// Start starts this program again in the enclosure. It fails on this system.
func (*Enclosure) Start(*exec.Cmd) error { return unavailable("an enclosure needs Linux") }

// TryEnclosure returns an error that says what this system lacks.
func TryEnclosure() error { return (*Enclosure)(nil).Start(nil) }
