//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package terminal

import "errors"

// flush cannot discard typed input here, so that no question is asked.
func flush(uintptr) error { return errors.ErrUnsupported }
