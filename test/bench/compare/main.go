// Command compare measures an MCP server that has the tool codex: the time to start, the
// memory after it, the CPU time per event of an answer streamed in 5,000 pieces, and the peak
// memory of 500 concurrent calls. The model is a script in this process, so that two servers
// can be compared under the same conditions:
//
//	go build -o /tmp/codex-mcp ./codexserver/cmd/codex-mcp
//	go run ./compare /tmp/codex-mcp
//	go run ./compare codex mcp-server
//
// Of two servers it measures only the start, in turns, and prints the ratios of the medians:
//
//	go run ./compare /tmp/codex-mcp-before -- /tmp/codex-mcp
//
// With -shared it measures what --shared saves: starts, and the memory of four idle clients. It
// needs root, because the program hides its memory from others.
//
//	go run ./compare -shared /tmp/codex-mcp
//
// It reads the server's times from /proc and runs on Linux only.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

const (
	rounds = 9
	settle = 300 * time.Millisecond // until a server is idle
	pieces = 5000
	runs   = 10
	calls  = 500
)

func main() {
	first, second := os.Args[1:], []string(nil)
	if i := slices.Index(first, "--"); i >= 0 {
		first, second = first[:i], first[i+1:]
	}
	if len(first) == 0 {
		fmt.Fprintln(os.Stderr, "usage: compare SERVER [ARGUMENT]... [-- SERVER [ARGUMENT]...]\n       compare -shared PROGRAM")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if first[0] == "-shared" && len(first) == 2 {
		err = sharing(ctx, first[1])
	} else if second != nil {
		err = startUp(ctx, first, second)
	} else {
		err = errors.Join(startUp(ctx, first), stream(ctx, first), crowd(ctx, first))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// figures of a start, in the order of the values that measure returns.
var figures = []string{"start to initialize, ms", "CPU until then, ms", "resident when idle, MiB", "program, MiB"}

// startUp measures starts of the servers in turns, and prints the median of each figure.
func startUp(ctx context.Context, servers ...[]string) error {
	samples := make([][][]float64, len(servers)) // of a server, of a figure
	for range rounds {
		for i, argv := range servers {
			values, err := measure(ctx, argv)
			if err != nil {
				return err
			}
			for n, value := range values {
				if samples[i] == nil {
					samples[i] = make([][]float64, len(values))
				}
				samples[i][n] = append(samples[i][n], value)
			}
		}
	}
	for n, figure := range figures {
		fmt.Printf("%-25s", figure)
		var medians []float64
		for i := range servers {
			slices.Sort(samples[i][n])
			medians = append(medians, samples[i][n][rounds/2])
			fmt.Printf(" %8.2f", medians[i])
		}
		if len(medians) == 2 {
			fmt.Printf("   ratio %.2f", medians[1]/medians[0])
		}
		fmt.Println()
	}
	return nil
}

// measure starts a server once.
func measure(ctx context.Context, argv []string) ([]float64, error) {
	s, err := start(ctx, argv, providertest.Turn{})
	if err != nil {
		return nil, err
	}
	defer s.close()
	cpu, err := s.cpu()
	time.Sleep(settle)
	resident, err2 := s.memory("VmRSS")
	program, err3 := os.Stat(s.cmd.Path)
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	return []float64{s.took.Seconds() * 1e3, cpu.Seconds() * 1e3, resident, float64(program.Size()) / (1 << 20)}, nil
}

// stream measures calls one after another, each with an answer in many pieces.
func stream(ctx context.Context, argv []string) error {
	s, err := start(ctx, argv, providertest.Turn{Repeat: true, Text: slices.Repeat([]string{"word "}, pieces)})
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := s.run(1); err != nil { // warms up
		return err
	}
	before, err := s.cpu()
	if err != nil {
		return err
	}
	events := 0
	for range runs {
		n, err := s.run(1)
		if err != nil {
			return err
		}
		events += n
	}
	after, err := s.cpu()
	if err != nil {
		return err
	}
	fmt.Printf("CPU per event: %v (%d events)\n", ((after - before) / time.Duration(events)).Round(100*time.Nanosecond), events)
	return nil
}

// crowd measures many concurrent calls.
func crowd(ctx context.Context, argv []string) error {
	s, err := start(ctx, argv, providertest.Turn{Repeat: true, Text: []string{"hello ", "there"}})
	if err != nil {
		return err
	}
	defer s.close()
	begin := time.Now()
	if _, err := s.run(calls); err != nil {
		return err
	}
	peak, err := s.memory("VmHWM")
	if err != nil {
		return err
	}
	fmt.Printf("%d calls at once: peak memory %.1f MiB, answered in %v\n", calls, peak, time.Since(begin).Round(time.Millisecond))
	return nil
}
