//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package terminal

import "errors"

// flush cannot throw away here what was typed, so that nobody is asked.
func flush(uintptr) error { return errors.ErrUnsupported }
