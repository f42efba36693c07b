package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// flush discards typed keys that were not read.
func flush(fd uintptr) error { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) }

// rewrites reports whether a terminal can rewrite its last line: whether it takes escape sequences.
func rewrites(f *os.File) bool {
	var mode uint32
	err := windows.GetConsoleMode(windows.Handle(f.Fd()), &mode)
	return err == nil && mode&windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING != 0
}
