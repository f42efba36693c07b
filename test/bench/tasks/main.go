// Command tasks reports how well a model works with the native engine. It sets twelve small
// tasks and checks each with tests that the model has not seen. Eight are in real modules from
// the Go module proxy, with pinned sums: a test that fails, a report of a fault, a name to
// change, an option, a flag or a function to add. Four are in made repositories.
//
//	go run ./tasks -base-url http://localhost:11434/v1 -model qwen3-coder
//	go run ./tasks -base-url https://api.openai.com/v1 -env-key OPENAI_API_KEY -wire responses -model gpt-5
//	go run ./tasks -scripted    # the tasks' own solutions: all pass
//	go run ./tasks -wrong       # solutions that only look right: all fail
//
// Each task runs in its own folder with the policy never and the sandbox workspace-write, so
// that no questions are asked. The tests then run the model's code outside the sandbox:
// measure only models that you trust, or use a container. It needs Go, and no network but
// the provider's and the module proxy's.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// options are the flags of the command line.
type options struct {
	baseURL, model, wire, envKey string
	task                         string
	scripted, wrong, verbose     bool
	timeout                      time.Duration
}

func main() {
	native.Main() // does not return if the engine started this process to run commands
	var o options
	flag.StringVar(&o.baseURL, "base-url", "http://localhost:11434/v1", "the provider's address")
	flag.StringVar(&o.model, "model", "", "the model")
	flag.StringVar(&o.wire, "wire", "chat", "chat or responses")
	flag.StringVar(&o.envKey, "env-key", "", "the environment variable that holds the provider's key")
	flag.StringVar(&o.task, "task", "", "run only this task")
	flag.BoolVar(&o.scripted, "scripted", false, "play the tasks' own solutions instead of asking a model")
	flag.BoolVar(&o.wrong, "wrong", false, "play a wrong solution of each task instead of asking a model")
	flag.BoolVar(&o.verbose, "v", false, "show what the model says and runs, and why a task failed")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "for each task")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	passed, all, err := measure(ctx, &o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tasks:", err)
		os.Exit(2)
	}
	if passed < all {
		os.Exit(1)
	}
}

// measure runs the tasks one after another.
func measure(ctx context.Context, o *options, out io.Writer) (passed, all int, err error) {
	tasks, err := load(o.task)
	if err != nil {
		return 0, 0, err
	}
	if o.model == "" && !o.scripted && !o.wrong {
		return 0, 0, fmt.Errorf("set -model, or use -scripted")
	}
	for _, t := range tasks {
		r, err := one(ctx, o, t, out)
		if err != nil {
			return passed, all, fmt.Errorf("%s: %w", t.name, err)
		}
		word := "FAIL"
		if r.passed {
			word = "ok  "
			passed++
		}
		all++
		fmt.Fprintf(out, "%s %-10s %3d requests %8d tokens %8s\n", word, t.name, r.requests, r.tokens,
			r.took.Round(100*time.Millisecond))
		if o.verbose && !r.passed {
			fmt.Fprintln(out, r.reason)
		}
	}
	fmt.Fprintf(out, "%d of %d passed\n", passed, all)
	return passed, all, nil
}

// one runs one task in a folder that is removed afterwards.
func one(ctx context.Context, o *options, t task, out io.Writer) (result, error) {
	dir, err := os.MkdirTemp("", "tasks-"+t.name+"-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	return play(ctx, o, t, dir, out)
}

// play runs one task in dir, with a script if the options ask for one.
func play(ctx context.Context, o *options, t task, dir string, out io.Writer) (result, error) {
	provider := *o
	if o.scripted || o.wrong {
		patch := t.solution
		if o.wrong {
			patch = t.wrong
		}
		script := providertest.New(
			providertest.Call(providertest.Shell("", "apply_patch", patch)),
			providertest.Say("Done."))
		defer script.Close()
		provider.baseURL, provider.model, provider.wire, provider.envKey = script.BaseURL(), "scripted", "chat", ""
	}
	return run(ctx, &provider, t, dir, out)
}
