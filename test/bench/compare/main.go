// Command compare measures an MCP server that has the tool codex: its start, its memory, and the CPU time
// of turns. The model is a script in this process, so that servers work under the same conditions:
//
//	go build -o /tmp/codex-mcp ./codexserver/cmd/codex-mcp
//	go run ./compare /tmp/codex-mcp --engine native
//	go run ./compare codex mcp-server
//
// Several servers are measured in turns, and printed with the ratios of the last one's medians to those of the others.
// `.ci/run bench COMMIT` does so with the program of a commit and that of the working tree:
//
//	go run ./compare /tmp/codex-mcp-before --engine native -- /tmp/codex-mcp --engine native
//
// -only measures the figures that match a pattern, -files 0 in a folder without a repository, and -busy while other
// processes keep the processors busy.
//
// With -shared it measures what --shared saves: starts, and the memory of four idle clients. It
// needs root, because the program hides its memory from others.
//
//	go run ./compare -shared /tmp/codex-mcp
//
// With -session it plays one session, and measures nothing. The script statements uses it.
//
// It reads the server's times from /proc and runs on Linux only.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"time"
)

const settle = 300 * time.Millisecond // until a server is idle

func main() {
	shared := flag.Bool("shared", false, "measure what --shared saves")
	rounds := flag.Int("rounds", 9, "how often each figure is measured")
	files := flag.Int("files", 1000, "the files of the repository in which the turns are; 0 takes an empty folder "+
		"without one")
	only := flag.String("only", "", "measure the `figures` that match this regular expression, and those measured "+
		"with them")
	session := flag.String("session", "", "play this `session` with the server: connect, plain or approval")
	busy := flag.Int("busy", 0, "how many processes compute all the time meanwhile")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: compare [-rounds N] [-files N] [-only FIGURES] [-busy N] SERVER "+
			"[ARGUMENT]... [-- SERVER [ARGUMENT]...]...\n       compare -session NAME SERVER [ARGUMENT]...\n       "+
			"compare -shared PROGRAM")
	}
	flag.Parse()
	servers, rest := [][]string{}, flag.Args()
	for i := slices.Index(rest, "--"); i >= 0; i = slices.Index(rest, "--") {
		servers, rest = append(servers, rest[:i]), rest[i+1:]
	}
	servers = append(servers, rest)
	if slices.ContainsFunc(servers, func(argv []string) bool { return len(argv) == 0 }) || *rounds < 1 || *files < 0 ||
		*busy < 0 {
		flag.Usage()
		os.Exit(2)
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare: -only:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	end, err := compute(ctx, *busy)
	defer end()
	if err != nil {
		// said below
	} else if *shared {
		err = sharing(ctx, rest[0])
	} else if *session != "" {
		err = inFolder(*files, func(folder string) error { return play(ctx, *session, rest, folder) })
	} else {
		err = inFolder(*files, func(folder string) error { return compare(ctx, *rounds, folder, pattern, servers) })
	}
	if err != nil {
		end()
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// compare measures each figure of the servers in turns, and prints the medians, and the ratios of the last one to the others.
func compare(ctx context.Context, rounds int, folder string, only *regexp.Regexp, servers [][]string) error {
	for _, m := range measurements {
		if !slices.ContainsFunc(m.figures, only.MatchString) {
			continue
		}
		samples := make([][][]float64, len(servers)) // of a server and a round, of each figure
		for round := range rounds {
			for n := range servers {
				if round%2 == 1 { // in the other order
					n = len(servers) - 1 - n
				}
				values, err := m.measure(ctx, servers[n], folder)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", servers[n][0], m.figures[0], err)
				}
				samples[n] = append(samples[n], values)
			}
		}
		for i, figure := range m.figures {
			fmt.Printf("%-52s", figure)
			var medians []float64
			for _, of := range samples {
				slices.SortFunc(of, func(a, b []float64) int { return cmp.Compare(a[i], b[i]) })
				medians = append(medians, of[len(of)/2][i])
				fmt.Printf(" %9.2f", medians[len(medians)-1])
			}
			for _, other := range medians[:len(medians)-1] {
				fmt.Printf("   ratio %.2f", medians[len(medians)-1]/other)
			}
			fmt.Println()
		}
	}
	return nil
}
