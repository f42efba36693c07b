// Command bench measures package streamable and the official Go SDK's server over
// Streamable HTTP on the same work: a server with one tool that repeats a text, asked by
// the same client over loopback, in one run, sample by sample in turn.
//
//	go run .                 # all of it
//	go run . -work ping      # two rows
//
// Work: ping, list (tools/list) and call (tools/call), one request after another on one
// connection or by 64 clients at once. They belong to a session; today is a tools/call
// of MCP 2026-07-28. idle is the memory of one of 1,000 sessions without requests.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

func main() {
	works := flag.String("work", "ping,list,call,today", "work to measure")
	only := flag.String("peer", "", "peer to measure; all if empty")
	samples := flag.Int("samples", 21, "samples per peer")
	span := flag.Duration("span", 100*time.Millisecond, "length of a sample")
	sessions := flag.Int("sessions", 1000, "idle sessions; 0 measures none")
	profile := flag.String("cpuprofile", "", "write a CPU profile here")
	flag.Parse()
	if *profile != "" {
		check(pprof.StartCPUProfile(must(os.Create(*profile))))
		defer pprof.StopCPUProfile()
	}
	chosen := slices.DeleteFunc(slices.Clone(peers), func(p peer) bool { return *only != "" && p.name != *only })
	heading(chosen)
	for work := range strings.SplitSeq(*works, ",") {
		for _, clients := range []int{1, 64} {
			measure(chosen, work, clients, *samples, *span)
		}
	}
	if *sessions > 0 {
		idle(chosen, *sessions)
	}
}

func heading(chosen []peer) {
	fmt.Print("| work | clients |")
	for _, p := range chosen {
		fmt.Printf(" %s |", p.name)
	}
	fmt.Print(" best other ÷ streamable |\n|---|---|" + strings.Repeat("---|", len(chosen)+1) + "\n")
}

// row prints the medians. Lower is better.
func row(work string, clients int, chosen []peer, medians []float64) {
	fmt.Printf("| %s | %d |", work, clients)
	best, own := 0.0, 0.0
	for i, p := range chosen {
		fmt.Printf(" %.1f |", medians[i])
		if p.name == ours {
			own = medians[i]
		} else if best == 0 || medians[i] < best {
			best = medians[i]
		}
	}
	if best > 0 && own > 0 {
		fmt.Printf(" %.2f", best/own)
	}
	fmt.Println(" |")
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}
