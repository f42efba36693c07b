package terminal

import "golang.org/x/sys/windows"

// flush throws away what was typed and not read.
func flush(fd uintptr) error { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) }
