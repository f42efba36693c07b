// Command compare measures an MCP server that has the tool codex: the time to start, the
// memory after it, the CPU time per event of an answer streamed in 5,000 pieces, and the peak
// memory of 500 concurrent calls. The model is a script in this process, so that two servers
// can be compared under the same conditions:
//
//	go build -o /tmp/codex-mcp ./codexserver/cmd/codex-mcp
//	go run ./bench/compare /tmp/codex-mcp
//	go run ./bench/compare codex mcp-server
//
// It reads the server's times from /proc and runs on Linux only.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

const (
	starts = 21
	pieces = 5000
	runs   = 10
	calls  = 500
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: compare SERVER [ARGUMENT]...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, measure := range []func(context.Context, []string) error{startUp, stream, crowd} {
		if err := measure(ctx, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
			os.Exit(1)
		}
	}
}

// startUp measures the time from the start to the answer to initialize.
func startUp(ctx context.Context, argv []string) error {
	var took []time.Duration
	var idle string
	for range starts {
		s, err := start(ctx, argv, providertest.Turn{})
		if err != nil {
			return err
		}
		took = append(took, s.took)
		idle, err = s.memory("VmRSS")
		s.close()
		if err != nil {
			return err
		}
	}
	slices.Sort(took)
	fmt.Printf("start to initialize: %v (median of %d), then resident: %s\n", took[len(took)/2].Round(100*time.Microsecond), starts, idle)
	return nil
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
	fmt.Printf("%d calls at once: peak memory %s, answered in %v\n", calls, peak, time.Since(begin).Round(time.Millisecond))
	return nil
}
