//go:build !linux

package safefile

import "syscall"

// LockAt locks the whole file exclusively: this system has no locks of a byte for an open file.
// It fails with [ErrLocked] while another open file has it locked.
func LockAt(f syscall.Conn, _ int64) error { return Lock(f) }

// ShareAt is LockAt together with others that share the file.
func ShareAt(f syscall.Conn, _ int64) error { return Share(f) }

// UnlockRange ends the lock of the file.
func UnlockRange(f syscall.Conn) error { return Unlock(f) }
