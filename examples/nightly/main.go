// Command nightly has Codex work while nobody is there, up to a budget, and writes a patch for
// the morning. It starts codex-mcp, in a repository:
//
//	go run ./examples/nightly -tokens 500000 -minutes 30 "remove dead code" >night.patch
//
// The work happens in a git worktree of its own and in the sandbox, without questions, so the
// repository does not change before you read the patch and run "git apply night.patch". The
// worktree stays until the tool codex-worktree discards it. nightly.yml next to it is a workflow.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

func main() {
	tokens := flag.Int("tokens", 500_000, "end the work after this `number` of tokens")
	minutes := flag.Float64("minutes", 30, "end the work after this `time`")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "nightly: a task is missing")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	budget := map[string]any{"tokens": *tokens, "minutes": *minutes}
	if err := start(ctx, strings.Join(flag.Args(), " "), budget); err != nil {
		fmt.Fprintln(os.Stderr, "nightly:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, prompt string, budget map[string]any) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	cmd := exec.Command("codex-mcp")
	cmd.Stderr = os.Stderr
	c, err := client.Start(ctx, &client.Options{Command: cmd})
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, c, cwd, prompt, budget, os.Stdout, os.Stderr), c.Close())
}

// run works on a task, and writes the changes to patch and a report to log. A budget that is spent
// is no error: what was done until then is in the patch.
func run(ctx context.Context, c *client.Client, cwd, prompt string, budget map[string]any, patch, log io.Writer) error {
	r, err := c.Run(ctx, client.Task{
		Prompt:    prompt,
		Cwd:       cwd,
		Worktree:  true,
		Approvals: protocol.ApprovalNever, // what would need an approval is refused
		Sandbox:   protocol.SandboxWorkspaceWrite,
		Arguments: map[string]any{"budget": budget},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "%s: %s\n", r.Status, elicit.ShowText(r.Answer))
	if r.Usage != nil {
		fmt.Fprintf(log, "tokens: %d in, %d out\n", r.Usage.Turn.Input, r.Usage.Turn.Output)
	}
	for _, x := range r.Refused {
		fmt.Fprintf(log, "refused: %s: %s\n", elicit.ShowText(x.What), elicit.ShowText(x.Why))
	}
	if r.Stopped == "" && r.Err() != nil {
		return r.Err()
	}
	diff, cut, err := c.Show(ctx, client.View{Thread: r.Thread, What: "diff"})
	if err != nil {
		return err
	}
	if cut > 0 {
		return fmt.Errorf("the changes are too many for a patch: see codex-worktree of the thread %s", r.Thread)
	}
	_, err = io.WriteString(patch, diff)
	return err
}
