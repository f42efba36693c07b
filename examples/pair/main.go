// Command pair has two agents work on tasks in turn, and each reviews what the other did: one
// writes, the other looks for faults, the first mends them. It starts codex-mcp twice, in a
// repository without uncommitted changes:
//
//	go run ./examples/pair -a gpt-5 -b gpt-5-codex "add a test for parse" "document parse"
//
// Nobody is asked: commands run in the sandbox, and what would need an approval is refused. The
// changes stay in the folder, not committed.
package main

import (
	"cmp"
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

// rounds is how often a task is mended.
const rounds = 3

func main() {
	a := flag.String("a", "gpt-5", "the `model` of the first agent")
	b := flag.String("b", "gpt-5-codex", "the `model` of the second agent")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := start(ctx, []string{*a, *b}, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pair:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, models, tasks []string) (err error) {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	var agents []agent
	for _, model := range models {
		cmd := exec.Command("codex-mcp", "-m", model)
		cmd.Stderr = os.Stderr
		c, e := client.Start(ctx, &client.Options{Command: cmd})
		if e != nil {
			return e
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		agents = append(agents, agent{model, c})
	}
	return run(ctx, agents, cwd, tasks, os.Stdout)
}

// agent is a server with a model of its own.
type agent struct {
	name   string
	client *client.Client
}

// run gives the tasks to the two agents in turn. It ends at the first task that still has faults
// after the last round.
func run(ctx context.Context, agents []agent, cwd string, tasks []string, out io.Writer) error {
	for i, task := range tasks {
		author, reviewer := agents[i%2], agents[(i+1)%2]
		work := client.Task{Prompt: task, Cwd: cwd, Approvals: protocol.ApprovalNever, Sandbox: protocol.SandboxWorkspaceWrite}
		faults := ""
		for round := 0; round == 0 || faults != ""; round++ {
			if round > rounds {
				return fmt.Errorf("%q still has faults after %d rounds", task, rounds)
			}
			r, err := author.client.Run(ctx, work)
			if err := cmp.Or(err, r.Err()); err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: %s\n", author.name, elicit.ShowText(r.Answer))
			if faults, err = review(ctx, reviewer, cwd, task); err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: %s\n", reviewer.name, cmp.Or(elicit.ShowText(faults), "no faults"))
			work = client.Task{Thread: r.Thread, Prompt: "A reviewer found these faults. Mend those that are real:\n" + faults}
		}
	}
	return nil
}

// review returns the faults that a reviewer finds in the uncommitted changes, one a line, "" if
// there are none. A review can change nothing.
func review(ctx context.Context, a agent, cwd, task string) (string, error) {
	r, err := a.client.Review(ctx, client.Review{Target: "uncommitted", Cwd: cwd, Instructions: "The task was: " + task})
	if err := cmp.Or(err, r.Err()); err != nil {
		return "", err
	}
	var lines []string
	for _, f := range r.Findings {
		if !f.OutsideDiff { // others are not about the changes, or made up
			lines = append(lines, fmt.Sprintf("%s:%d %s: %s", f.Path, f.StartLine, f.Title, f.Body))
		}
	}
	return strings.Join(lines, "\n"), nil
}
