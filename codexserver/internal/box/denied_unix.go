//go:build unix

package box

import "golang.org/x/sys/unix"

// hasAccess reports whether this process may write to path.
func hasAccess(path string) bool { return unix.Access(path, unix.W_OK) == nil }
