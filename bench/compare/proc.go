package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// cpu returns the CPU time that the server's threads have used.
func (s *server) cpu() (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if os.IsNotExist(err) {
			continue // the thread has ended
		}
		var used time.Duration
		if _, err := fmt.Sscan(string(text), &used); err != nil {
			return 0, fmt.Errorf("%s: %w", thread, err)
		}
		sum += used
	}
	return sum, nil
}

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
