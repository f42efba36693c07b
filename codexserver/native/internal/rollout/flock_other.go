//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package rollout

import (
	"errors"
	"os"
)

// errLocked reports a file that another process has locked.
var errLocked = errors.New("locked")

// lock locks a file until it is closed or its process ends.
func lock(*os.File) error { return errors.ErrUnsupported }
