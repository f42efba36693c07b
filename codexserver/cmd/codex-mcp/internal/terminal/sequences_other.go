//go:build !windows

package terminal

import "os"

// enableSequences reports true: terminals interpret control sequences.
func enableSequences(*os.File) bool { return true }
