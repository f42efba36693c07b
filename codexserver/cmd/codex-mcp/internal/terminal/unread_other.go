//go:build !unix

package terminal

import "os"

// unread reports false: on this system only a write detects that the reader is gone.
func unread(*os.File) bool { return false }
