//go:build !unix

package terminal

import "os"

// unread cannot be determined here before a write.
func unread(*os.File) bool { return false }
