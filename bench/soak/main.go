// Command soak drives codex-mcp under faults for a while, and fails when a call is not
// answered, or when memory, goroutines, descriptors or threads are not flat after the
// first minute.
//
//	go build -o /tmp/codex-mcp ./codexserver/cmd/codex-mcp
//	go run ./bench/soak -for 15m /tmp/codex-mcp
//
// Two servers do the same work on the native engine with a scripted provider: the
// program, whose one client stays, and runs of it whose clients leave; and a server of
// the packages in a process of its own, whose clients come and go and which reports its
// goroutines. The faults are in work.go and provider.go. It needs Linux.
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
	native.Main() // this may be a keeper of commands
	length := flag.Duration("for", 15*time.Minute, "how long")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of what is done when")
	asHost := flag.Bool("host", false, "be the server of the packages")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := errors.New("want the program to drive")
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

// warmUp is how long figures may rise.
const warmUp = time.Minute

func soak(ctx context.Context, program string, length time.Duration, seed uint64, out io.Writer) (err error) {
	if length < 2*warmUp {
		return fmt.Errorf("-for: want at least %s, of which the first is the start", 2*warmUp)
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
