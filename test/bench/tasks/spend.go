package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// spend runs a command to its end and measures it.
func spend(ctx context.Context, cmd *exec.Cmd) (cost, error) {
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &printed, &printed, 5*time.Second
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	peak := 0.0
	for tick := time.Tick(10 * time.Millisecond); ; { // Wait's figure would have the memory of this program
		select {
		case err := <-ended:
			if err == nil && peak == 0 {
				err = errors.New("/proc does not tell the memory")
			}
			if err != nil {
				return cost{}, fmt.Errorf("%w\n%s", err, printed.Bytes())
			}
			state := cmd.ProcessState
			return cost{wall: time.Since(begin), cpu: state.UserTime() + state.SystemTime(), memory: peak}, nil
		case <-ctx.Done():
			_ = cmd.Process.Kill() // it may have ended
			return cost{}, fmt.Errorf("%w\n%s", errors.Join(context.Cause(ctx), <-ended), printed.Bytes())
		case <-tick:
			peak = max(peak, resident(cmd.Process.Pid))
		}
	}
}

// resident returns the peak memory of a process in MiB, 0 if it has ended.
func resident(pid int) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kB float64
	_, _ = fmt.Sscan(rest, &kB) // a process that has ended has none
	return kB / 1024
}
