//go:build !unix

package terminal

import "os"

// readerLeaves returns false: on this system only a write detects that the reader is gone.
func readerLeaves(*os.File) bool { return false }
