//go:build unix

package safefile

import (
	"errors"
	"syscall"
)

// IsFull reports whether a write failed because the disk, a quota or a limit of the size of files has
// no room for it.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
