//go:build unix

package store

import (
	"errors"
	"syscall"
)

// isFull reports whether the system has no room for a write.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
