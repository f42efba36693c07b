package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cost is what processes take.
type cost struct {
	memory    float64 // proportional set size, MiB; NaN if this user may not read it
	cpu       float64 // seconds since their start, with those of their children that have ended
	processes int
}

// cost returns what the processes of a service take, with all that they have started.
func (s *service) cost(memory bool) (all cost, err error) {
	ours := map[string]bool{}
	for _, p := range s.all {
		ours[strconv.Itoa(p.cmd.Process.Pid)] = true
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return all, errors.Join(errors.New("this system has no /proc of Linux"), err)
	}
	parents, used, ticks := map[string]string{}, map[string]int{}, 0
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid := filepath.Base(filepath.Dir(file))
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from the third on
		parents[pid] = fields[1]
		for _, field := range fields[11:15] {
			n, _ := strconv.Atoi(field) // the kernel writes numbers
			used[pid] += n
		}
	}
	for pid := range parents {
		top := pid
		for top != "" && !ours[top] {
			top = parents[top]
		}
		if top == "" {
			continue
		}
		ticks += used[pid]
		all.processes++
		if memory {
			all.memory += proportional(pid)
		}
	}
	all.cpu = float64(ticks) / 100 // Linux tells programs hundredths of a second
	return all, nil
}

// proportional returns the proportional set size of a process in MiB.
func proportional(pid string) (size float64) {
	text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if errors.Is(err, fs.ErrPermission) {
		return math.NaN()
	}
	_, rest, _ := strings.Cut(string(text), "\nPss:")
	_, _ = fmt.Sscan(rest, &size) // fails if the process has ended
	return size / 1024
}

// state measures a state that lasts: its memory, and the CPU time of a second.
func (s *service) state(lasts time.Duration) (cost, error) {
	time.Sleep(lasts / 2) // what began it has ended
	before, err := s.cost(false)
	if err != nil {
		return cost{}, err
	}
	began := time.Now()
	time.Sleep(lasts)
	after, err := s.cost(true)
	after.cpu = (after.cpu - before.cpu) / time.Since(began).Seconds()
	return after, err
}

// stored returns the size of what JetStream keeps, in KiB.
func (s *service) stored() (kB float64) {
	for _, p := range s.all {
		_ = filepath.WalkDir(p.cmd.Dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.Contains(path, "jetstream") {
				return nil // it was just removed, or is not of NATS
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				kB += float64(info.Size()) / 1024
			}
			return nil
		})
	}
	return kB
}
