package mcp

import (
	"bytes"
	"fmt"
	"os"
)

// startOf returns when a process began, in ticks since the start of the machine, or "" if that is
// not known. The same process id means another process after a while, and in another namespace of
// processes, such as that of another worker.
func startOf(process int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return ""
	}
	_, text, _ = bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" ")) // after the name, which may have anything
	if fields := bytes.Fields(text); len(fields) > 19 {
		return string(fields[19]) // field 22 of proc_pid_stat(5)
	}
	return ""
}
