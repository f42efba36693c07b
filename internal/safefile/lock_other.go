//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package safefile

import (
	"errors"
	"syscall"
)

// ErrLocked reports a file that another open file has locked.
var ErrLocked = errors.New("locked")

// Lock locks a file exclusively.
func Lock(syscall.Conn) error { return errors.ErrUnsupported }

// Share locks a file together with others that share it. It fails with [ErrLocked] while
// another open file has it locked exclusively.
func Share(syscall.Conn) error { return errors.ErrUnsupported }

// Await does nothing: this system has no known locks.
func Await(syscall.Conn) error { return nil }

// Unlock does nothing.
func Unlock(syscall.Conn) error { return nil }
