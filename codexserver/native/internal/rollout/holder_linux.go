package rollout

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxProc is the size of the longest list of locks in bytes.
const maxProc = 1 << 20

// holder returns the process that has locked a file, as the end of an error, or "". The kernel names the process that took
// a lock, which may have ended and left it to others. So only one that has the file open is named.
func holder(file fs.FileInfo) string {
	of, ok := file.Sys().(*syscall.Stat_t)
	locks, err := safefile.Read("/proc/locks", maxProc)
	if !ok || err != nil {
		return ""
	}
	for line := range strings.Lines(string(locks)) { // such as "1: FLOCK ADVISORY WRITE 71 00:1b:53 0 EOF"
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" ||
			!strings.HasSuffix(fields[5], ":"+strconv.FormatUint(of.Ino, 10)) {
			continue
		}
		process := filepath.Join("/proc", fields[4])
		open, _ := filepath.Glob(filepath.Join(process, "fd", "*"))
		for _, name := range open {
			if info, err := os.Stat(name); err == nil && os.SameFile(info, file) {
				text, _ := safefile.Read(filepath.Join(process, "comm"), maxProc) // what the process calls itself
				return fmt.Sprintf(" (process %s, %q)", fields[4], bytes.TrimSpace(text))
			}
		}
	}
	return ""
}
