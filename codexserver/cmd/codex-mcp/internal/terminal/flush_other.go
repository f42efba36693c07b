//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package terminal

import "errors"

// flush fails: this system cannot discard typed keys, so no question is asked.
func flush(uintptr) error { return errors.ErrUnsupported }
