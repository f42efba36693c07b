// Command soak drives codex-mcp under faults. It fails if a call is not answered, or if
// memory, goroutines, descriptors or threads keep rising after the first minute.
//
//	go build -o /tmp/codex-mcp ./codexserver/cmd/codex-mcp
//	go run ./soak -for 15m /tmp/codex-mcp
//
// Two servers do the same work on the native engine with a scripted provider. One is the
// program: one client stays connected, and other runs of the program end with their clients.
// The other is a server of the packages in its own process, which reports its goroutines;
// its clients connect and disconnect. The faults are in work.go and provider.go. It needs
// Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native"
)

func main() {
	native.Main() // does not return if the engine started this process to run commands
	length := flag.Duration("for", 15*time.Minute, "how long to run")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "the `seed` of the random order")
	asHost := flag.Bool("host", false, "run the server of the packages; for soak itself")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := errors.New("usage: soak [-for DURATION] PROGRAM")
	switch {
	case *asHost:
		err = host(ctx)
	case flag.NArg() == 1:
		err = soak(ctx, flag.Arg(0), *length, *seed, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// warmUp is the time at the start in which figures may rise.
const warmUp = time.Minute

func soak(ctx context.Context, program string, length time.Duration, seed uint64, out io.Writer) (err error) {
	if length < 2*warmUp {
		return fmt.Errorf("-for: want at least %s: the first %s do not count", 2*warmUp, warmUp)
	}
	fmt.Fprintf(out, "seed %d\n", seed)
	dir, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	model := newProvider()
	defer model.close()
	p, err := newPlace(dir, program, model.url())
	if err != nil {
		return err
	}
	w := &work{place: p, random: rand.New(rand.NewPCG(seed, 0)), counts: map[string]int{}}
	one, err := p.startProgram(ctx)
	if err != nil {
		return err
	}
	defer one.kill()
	many, err := p.startHost(ctx)
	if err != nil {
		return err
	}
	defer many.kill()
	figures := newFigures(one, many)

	working, stop := context.WithTimeout(ctx, length)
	defer stop()
	before := many.goroutines
	sampled := make(chan error, 1)
	go func() { sampled <- figures.sample(working, out) }()
	w.run(working, one, many)
	stop()
	err = errors.Join(<-sampled, ctx.Err())
	fmt.Fprintf(out, "%s\n", w.report())
	err = errors.Join(err, w.failure(), figures.judge(out), many.settles(before, out), one.leaves(), many.leaves())
	return errors.Join(err, p.nothingLeft())
}
