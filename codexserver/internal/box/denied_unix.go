//go:build unix

package box

import "golang.org/x/sys/unix"

func hasAccess(path string) bool { return unix.Access(path, unix.W_OK) == nil }
