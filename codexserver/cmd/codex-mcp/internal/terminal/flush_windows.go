package terminal

import "golang.org/x/sys/windows"

// flush discards typed keys that were not read.
func flush(fd uintptr) error { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) }
