package shared

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"
)

// Trim gives back the memory that this process needed to start: the free part of the heap,
// and the pages of the program's file, which the kernel reads again when they are needed.
func Trim() {
	debug.FreeOSMemory()
	maps, err := os.ReadFile("/proc/self/maps")
	program, perr := os.Executable()
	if err != nil || perr != nil {
		return
	}
	for line := range bytes.Lines(maps) {
		// 00400000-00e28000 r-xp 00000000 08:01 131 /usr/bin/codex-mcp
		fields := bytes.Fields(line)
		if len(fields) < 6 || string(fields[5]) != program || fields[1][1] != '-' { // a changed page would be lost
			continue
		}
		from, to, _ := bytes.Cut(fields[0], []byte("-"))
		begin, err := strconv.ParseUint(string(from), 16, 64)
		end, eerr := strconv.ParseUint(string(to), 16, 64)
		if err == nil && eerr == nil {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(begin), uintptr(end-begin), unix.MADV_DONTNEED)
		}
	}
}
