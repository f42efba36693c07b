package main

import (
	"fmt"
	"os"
	"strings"
)

// memory returns a figure of the server's memory in MiB: VmRSS is the current size, VmHWM the
// peak.
func (s *server) memory(figure string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, figure+":"); ok {
			var kB float64
			_, err := fmt.Sscan(value, &kB)
			return kB / 1024, err
		}
	}
	return 0, fmt.Errorf("/proc has no %s", figure)
}
