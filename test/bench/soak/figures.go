package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// flat is how much a figure may rise: the median of the last third of a run may exceed the
// early median by a part of it plus slack.
type flat struct {
	name  string
	unit  string
	part  float64
	slack int
}

var kinds = []flat{
	{"memory", "MiB", 0.2, 16},
	{"goroutines", "", 0.2, 40},
	{"descriptors", "", 0.2, 20},
	{"threads", "", 0.2, 10},
}

// figures are samples of servers, one list for each kind.
type figures struct {
	names   []string
	servers []*process
	begun   time.Time
	samples []sample
}

type sample struct {
	at     time.Duration
	server int
	values [4]int // -1: not known
}

func newFigures(one, many *process) *figures {
	return &figures{names: []string{"codex-mcp", "packages"}, servers: []*process{one, many}, begun: time.Now()}
}

// sample samples the servers once a second until ctx ends, and prints some samples.
func (f *figures) sample(ctx context.Context, out io.Writer) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for i, s := range f.servers {
			v, err := s.look()
			if err != nil {
				return fmt.Errorf("%s: %w", f.names[i], err)
			}
			at := time.Since(f.begun)
			f.samples = append(f.samples, sample{at, i, v})
			if n%30 == 0 {
				fmt.Fprintf(out, "%6s  %-10s %s\n", at.Round(time.Second), f.names[i], show(v))
			}
		}
	}
}

func show(v [4]int) string {
	var b strings.Builder
	for i, k := range kinds {
		if v[i] >= 0 {
			fmt.Fprintf(&b, "%s %d%s  ", k.name, v[i], k.unit)
		}
	}
	return strings.TrimSpace(b.String())
}

func (s *process) look() (v [4]int, err error) {
	dir := fmt.Sprintf("/proc/%d", s.cmd.Process.Pid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return v, err
	}
	number := func(name string) (n int) {
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, name+":"); ok {
				var atoi error
				n, atoi = strconv.Atoi(strings.Fields(value)[0])
				err = errors.Join(err, atoi)
			}
		}
		return n
	}
	open, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return v, err
	}
	// its client stays: a conversation is open for an hour, and so is the file of its outputs, which has no name
	if s.lines == nil {
		open = slices.DeleteFunc(open, func(fd os.DirEntry) bool {
			file, _ := os.Readlink(filepath.Join(dir, "fd", fd.Name())) // it may be closed by now
			return strings.Contains(file, "/log-")
		})
	}
	err = s.count()
	return [4]int{number("VmRSS") >> 10, s.goroutines, len(open), number("Threads")}, err
}

// judge prints the medians, and returns an error for each figure that is not flat.
func (f *figures) judge(out io.Writer) (err error) {
	for server, name := range f.names {
		for kind, k := range kinds {
			early, late := f.medians(server, kind)
			if early < 0 {
				continue
			}
			most := early + int(k.part*float64(early)) + k.slack
			fmt.Fprintf(out, "%-10s %-11s early %5d, last third %5d, at most %5d %s\n", name, k.name, early, late, most,
				k.unit)
			if late > most {
				err = errors.Join(err, fmt.Errorf("%s: %s rose from %d to %d %s", name, k.name, early, late, k.unit))
			}
		}
	}
	return err
}

// medians returns the median of the early samples and of the last third. The early samples
// are those from the second to the fifth minute, or in a short run the first third after the
// first minute.
func (f *figures) medians(server, kind int) (early, late int) {
	var length time.Duration
	for _, s := range f.samples {
		length = max(length, s.at)
	}
	until := min(5*time.Minute, warmUp+(length-warmUp)/3)
	var first, last []int
	for _, s := range f.samples {
		switch {
		case s.server != server:
		case s.at >= warmUp && s.at <= until:
			first = append(first, s.values[kind])
		case s.at > length-length/3:
			last = append(last, s.values[kind])
		}
	}
	return median(first), median(last)
}

// median returns the median, or -1 without values.
func median(v []int) int {
	if len(v) == 0 {
		return -1
	}
	slices.Sort(v)
	return v[len(v)/2]
}
