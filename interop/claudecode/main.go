// Command claudecode plays scenarios with Claude Code and codex-mcp: it installs Claude
// Code from npm, drives it in a terminal (tmux) and as claude -p, and looks at the
// screen, at the messages between the two, at what the commands made and at what the
// model received. Both models are scripts on loopback; no account and no key are needed,
// and the caller's home is not touched.
//
//	cd interop
//	go run ./claudecode                   all scenarios
//	go run ./claudecode -run '^task/'     some
//
// Each prints "ok NAME" or "FAIL NAME: why", and leaves its screens, the trace of
// codex-mcp and what the model received in a folder. It needs Linux or macOS with Go, npm
// and tmux. The gate does not run it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"
)

// release is the Claude Code that is installed.
const release = "2.1.329"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "claudecode:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("claudecode", flag.ExitOnError)
	choice := flags.String("run", "", "play the scenarios that match this `regexp`")
	out := flags.String("out", "", "the `folder` for screens and traces; default a new one in the system's temporary folder")
	cache := flags.String("cache", "", "the `folder` in which Claude Code is installed; default codexmcp-claude in the user's cache")
	server := flags.String("server", "", "the `program` codex-mcp; default one built from this checkout")
	limit := flags.Duration("limit", 5*time.Minute, "how long a scenario may take")
	_ = flags.Parse(args) // it exits by itself
	chosen, err := regexp.Compile(*choice)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if *out == "" {
		*out, err = os.MkdirTemp("", "claudecode-")
	} else {
		*out, err = filepath.Abs(*out)
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(scenarios, func(sc scenario) bool { return chosen.MatchString(sc.name) }) {
		return fmt.Errorf("-run %s: no scenario matches", *choice)
	}
	p, err := prepare(ctx, *cache, *server, *out)
	if err != nil {
		return err
	}
	failed := 0
	for _, sc := range scenarios {
		if !chosen.MatchString(sc.name) || ctx.Err() != nil {
			continue
		}
		began := time.Now()
		if err := play(ctx, sc, p, filepath.Join(*out, filepath.FromSlash(sc.name)), *limit); err != nil {
			fmt.Printf("FAIL %s: %v\n", sc.name, err)
			failed++
			continue
		}
		fmt.Printf("ok %s (%.1fs)\n", sc.name, time.Since(began).Seconds())
	}
	fmt.Println("screens and traces:", *out)
	if failed > 0 {
		return fmt.Errorf("%d scenarios failed", failed)
	}
	return ctx.Err()
}

func play(ctx context.Context, sc scenario, p programs, out string, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("the time is over"))
	defer cancel()
	for _, old := range []string{"trace.txt", "screen-*.txt"} { // are appended to, or numbered
		files, err := filepath.Glob(filepath.Join(out, old))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	s, err := newStage(ctx, p, out)
	if err != nil {
		return err
	}
	sc.play(s)
	return s.close()
}
