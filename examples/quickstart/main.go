// Command quickstart shows the whole job in one program: it hands Codex a task, follows the
// work, and lets a person decide whether a command may run.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -answer decline
//	go run ./examples/quickstart -base-url http://localhost:11434/v1 -model qwen3
//
// It needs nothing but Go and git. Without -base-url the model is a script on loopback: it
// asks for `git init -b main` and then reports the result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

func main() {
	native.Main() // does not return if the engine started this process to run commands
	answer := flag.String("answer", "", "answer questions with `accept, decline or cancel` instead of asking you")
	baseURL := flag.String("base-url", "",
		"use the OpenAI-compatible endpoint at this `URL` instead of the scripted model")
	model := flag.String("model", "scripted", "the `name` of the model")
	prompt := flag.String("prompt", "Make this folder a git repository.", "the task")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := &person{answer: *answer, keys: readKeys(os.Stdin), raw: raw, out: os.Stdout}
	if err := run(ctx, p, *baseURL, *model, *prompt); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p *person, baseURL, model, prompt string) error {
	dir, err := os.MkdirTemp("", "quickstart")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	home, work := filepath.Join(dir, "codex-home"), filepath.Join(dir, "work")
	for _, d := range []string{home, work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	if baseURL == "" {
		provider := scriptedModel()
		defer provider.Close()
		baseURL = provider.BaseURL()
	}

	e, err := native.New(&native.Options{CodexHome: home, Overrides: map[string]any{
		"model":                               model,
		"model_provider":                      "quickstart",
		"model_providers.quickstart.name":     "Quickstart",
		"model_providers.quickstart.base_url": baseURL,
		"model_providers.quickstart.wire_api": "chat",
		"approval_policy":                     "untrusted",
		"sandbox_mode":                        "workspace-write",
	}})
	if err != nil {
		return err
	}
	defer e.Close()

	fmt.Fprintln(p.out, "task:", prompt)
	answer, err := codexserver.New(e, nil).Run(ctx, codexserver.Turn{
		Prompt:  prompt,
		Config:  protocol.Config{Cwd: work},
		Event:   p.show,
		Approve: p.decide,
	})
	var aborted *engine.AbortError
	switch {
	case errors.As(err, &aborted):
		fmt.Fprintln(p.out, aborted)
	case err != nil:
		return err
	default:
		fmt.Fprintln(p.out, "answer:", answer.Text)
	}

	if _, err := os.Stat(filepath.Join(work, ".git")); err == nil {
		fmt.Fprintln(p.out, "proof: the folder is now a git repository")
	} else {
		fmt.Fprintln(p.out, "proof: the folder is not a git repository")
	}
	return nil
}
