package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// cost is what a service has at a moment.
type cost struct {
	cpu       float64        // seconds since the start, with those of processes that have ended
	processes map[string]int // the program that started each of them, by process id
}

// cost reads what a service has, with all that its programs have started.
func (s *service) cost() cost {
	programs := map[string]int{}
	for i, cmd := range s.all {
		programs[strconv.Itoa(cmd.Process.Pid)] = i
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	parents, ticks := map[string]string{}, map[string]int{}
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
			ticks[pid] += n
		}
	}
	now, sum := cost{processes: map[string]int{}}, 0
	for pid := range parents {
		for top := pid; top != ""; top = parents[top] {
			if i, ok := programs[top]; ok {
				now.processes[pid] = i
				sum += ticks[pid]
				break
			}
		}
	}
	now.cpu = float64(sum) / 100 // Linux tells programs hundredths of a second
	return now
}

// memory returns the proportional set size of the processes in MiB, NaN if this user may not read it.
func (c cost) memory() (sum float64) {
	for pid := range c.processes {
		text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		if errors.Is(err, fs.ErrPermission) {
			return math.NaN()
		}
		_, rest, _ := strings.Cut(string(text), "\nPss:")
		var size float64
		_, _ = fmt.Sscan(rest, &size) // fails if the process has ended
		sum += size / 1024
	}
	return sum
}

// written returns how many messages the NATS servers of a cluster have stored so far.
func (s *service) written(ctx context.Context) (count uint64, err error) {
	conn, err := nats.Connect(s.store)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return 0, err
	}
	streams := js.ListStreams(ctx)
	for info := range streams.Info() {
		count += info.State.LastSeq
	}
	return count, streams.Err()
}

// stored returns the size of what JetStream keeps on one NATS server, in KiB.
func (s *service) stored() (kB float64) {
	_ = filepath.WalkDir(s.all[0].Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(path, "jetstream") {
			return nil // it was just removed, or is not of NATS
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			kB += float64(info.Size()) / 1024
		}
		return nil
	})
	return kB
}
