// Command bench measures what the gateway costs. It runs the real programs: codex-mcp http, which
// is the direct way, codex-mcp-gateway with its own NATS server, and clusters of three NATS
// servers, a front and one or three nodes. The model is a script in this process. Direct calls and
// those through the gateways take turns, and each figure is the median of the rounds, so the ratios
// hold on a machine that does other work too.
//
//	go run ./bench             # all of it, about seven minutes on two cores
//	go run ./bench -part calls # only a part
//
// The parts: calls measures latency, streams and CPU time. states measures what a user takes whose
// worker is idle or busy, and the latency of another user meanwhile. idle measures users whose
// worker has ended.
//
// It runs on Linux only. It needs root for the memory, because the programs hide theirs from others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strings"
	"time"
)

// size says how much is measured.
type size struct {
	rounds   int   // of the calls; each figure is a median of them
	calls    int   // of each kind in a round
	events   int   // pieces of the answer of a stream
	together int   // users who call at the same time
	busy     int   // users with a worker
	idle     int   // users without a worker
	nodes    []int // of the clusters of states and idle; 0 is a gateway without a cluster

	lasts time.Duration // for which the CPU time of a state is measured
}

func main() {
	z := size{nodes: []int{0, 1}}
	l := &lab{}
	flag.IntVar(&z.rounds, "rounds", 7, "rounds of the part calls")
	flag.IntVar(&z.calls, "calls", 30, "calls of each kind in a round")
	flag.IntVar(&z.events, "events", 3000, "pieces of a streamed answer")
	flag.IntVar(&z.together, "together", 6, "users who call at the same time")
	flag.IntVar(&z.busy, "busy", 200, "users with a worker, idle and busy")
	flag.IntVar(&z.idle, "idle", 1000, "users without a worker")
	flag.DurationVar(&z.lasts, "lasts", 5*time.Second, "how long the CPU time of a state is measured")
	parts := flag.String("part", "calls,states,idle", "what to measure")
	flag.StringVar(&l.programs, "programs", "", "a folder with codex-mcp, codex-mcp-gateway and nats-server; they are built if it is empty")
	flag.StringVar(&l.dir, "dir", "", "a folder outside of /tmp, for a temporary one; default: the user's folder for caches")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, l, z, strings.Split(*parts, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the parts and prints their tables.
func run(ctx context.Context, l *lab, z size, parts []string) (err error) {
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.open(ctx, 1+max(z.busy, z.idle, z.together)); err != nil {
		return err
	}
	for _, part := range parts {
		measure, ok := map[string]func(context.Context, size) ([]row, error){"calls": l.calls, "states": l.states, "idle": l.idle}[part]
		if !ok {
			return fmt.Errorf("-part: unknown %q", part)
		}
		rows, err := measure(ctx, z)
		if err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		for _, r := range rows {
			fmt.Println(r)
		}
		fmt.Println()
	}
	return nil
}

// row is a line of a table: its title, or values. The other values are also divided by the first.
type row struct {
	what   string
	values []float64
	title  []string
}

// String returns the line in Markdown.
func (r row) String() string {
	if r.title != nil {
		return "| " + r.what + " | " + strings.Join(r.title, " | ") + " |\n|---|" + strings.Repeat("---|", len(r.title))
	}
	var line strings.Builder
	line.WriteString("| " + r.what)
	for i, v := range r.values {
		line.WriteString(" | " + number(v))
		if ratio := v / r.values[0]; i > 0 && !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
			line.WriteString(" (" + number(ratio) + ")")
		}
	}
	return line.String() + " |"
}

// number returns a value with three digits.
func number(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
