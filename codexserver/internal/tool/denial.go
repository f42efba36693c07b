package tool

import (
	"errors"
	"io/fs"
	"syscall"
)

// isDenial says that a failed write is one that a sandbox may have stopped.
func isDenial(err error) bool {
	return errors.Is(err, errOutside) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
