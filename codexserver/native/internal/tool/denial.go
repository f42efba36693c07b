package tool

import (
	"errors"
	"io/fs"
	"syscall"
)

// isDenial reports whether a sandbox may have stopped a failed write.
func isDenial(err error) bool {
	return errors.Is(err, errOutside) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
