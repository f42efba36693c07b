package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// meter is a program that counts what another one does.
type meter struct {
	name  string
	args  []string
	env   []string
	links []string // where its figures mean something
	ops   int      // of the shorter of two runs
	what  []figure
}

// figure is one number that a meter prints.
type figure struct {
	name string
	at   *regexp.Regexp
}

// meters count instructions of user code in one process, and what is asked of the kernel between processes on one core.
// Under valgrind one thread runs at a time, so there system calls mean nothing.
var meters = []meter{
	{
		"valgrind", []string{"--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"},
		// The collector would make two runs differ by more than what is looked for. Go reads the clock by RDTSCP where
		// it waits for a lock, which valgrind of Debian 12 does not know.
		[]string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=cpu.rdtscp=off"},
		[]string{"mem", "pipe"}, 1000, []figure{{"instructions", regexp.MustCompile(`I +refs: +([\d,]+)`)}},
	},
	{
		"perf", []string{"stat", "-e", strings.Join(kernel, ",")},
		[]string{"LC_ALL=C"},
		[]string{"near"}, 4000, kernelFigures(),
	},
}

var kernel = []string{
	"syscalls:sys_enter_read", "syscalls:sys_enter_write", "syscalls:sys_enter_ppoll", "syscalls:sys_enter_epoll_pwait",
	"syscalls:sys_enter_futex", "context-switches",
}

func kernelFigures() (out []figure) {
	for _, event := range kernel {
		out = append(out, figure{strings.TrimPrefix(event, "syscalls:sys_enter_"),
			regexp.MustCompile(`([\d,]+) +` + event + `\b`)})
	}
	return out
}

// comparedPeers are those that are counted, unless others are named.
const comparedPeers = "jsonrpc,jsonrpc inline,lsp.dev,lsp.dev inline"

// count prints what one operation costs in each cell, by the difference of two runs. It reports whether all could be counted.
func count(w io.Writer, links, works string, names []string) bool {
	fmt.Fprintf(w, "| link | work | per operation | %s |\n|---|---|---|%s\n", strings.Join(names, " | "),
		strings.Repeat("---|", len(names)))
	all := true
	for _, m := range meters {
		if err := m.try(); err != nil {
			fmt.Fprintf(os.Stderr, "%s cannot count here: %v\n", m.name, err)
			all = false
			continue
		}
		for link := range strings.SplitSeq(links, ",") {
			if !slices.Contains(m.links, link) {
				continue
			}
			for work := range strings.SplitSeq(works, ",") {
				m.row(w, link, work, names)
			}
		}
	}
	return all
}

// try returns why the meter cannot count, or nil.
func (m *meter) try() error {
	_, err := m.run("true")
	return err
}

// row prints the figures of a cell, a line each.
func (m *meter) row(w io.Writer, link, work string, names []string) {
	ops, per := m.ops, 1 // of each caller, and how many there are
	switch work {
	case "par":
		ops, per = ops/50, callers
	case "big":
		ops /= 100
	}
	columns := make([][]float64, len(names)) // by peer
	for i, name := range names {
		few, many := must(m.cell(link, work, name, ops)), must(m.cell(link, work, name, 3*ops))
		for j := range few {
			columns[i] = append(columns[i], (many[j]-few[j])/float64(2*ops*per))
		}
	}
	for j, f := range m.what {
		fmt.Fprintf(w, "| %s | %s | %s |", link, work, f.name)
		for _, c := range columns {
			if f.name == "instructions" {
				fmt.Fprintf(w, " %.1fk |", c[j]/1000)
			} else {
				fmt.Fprintf(w, " %.2f |", c[j])
			}
		}
		fmt.Fprintln(w)
	}
}

// cell returns what a run of so many operations costs.
func (m *meter) cell(link, work, peer string, ops int) ([]float64, error) {
	return m.run(must(os.Executable()), "-link", link, "-work", work, "-peer", peer, "-samples", "1", "-ops",
		strconv.Itoa(ops))
}

// run returns the figures of a program's run.
func (m *meter) run(program ...string) (out []float64, err error) {
	cmd := exec.Command(m.name, slices.Concat(m.args, program)...)
	var printed bytes.Buffer
	cmd.Stderr = &printed
	cmd.Env = append(os.Environ(), m.env...)
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w %s", err, bytes.TrimSpace(printed.Bytes()))
	}
	for _, f := range m.what {
		found := f.at.FindSubmatch(printed.Bytes())
		if found == nil {
			return nil, fmt.Errorf("no %s in %s", f.name, bytes.TrimSpace(printed.Bytes()))
		}
		out = append(out, must(strconv.ParseFloat(strings.ReplaceAll(string(found[1]), ",", ""), 64)))
	}
	return out, nil
}
