package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// builder is an engine that asks whether it may build.
func builder(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
	out := host.Ask(ctx, approval.Command{CallID: "1", Command: []string{"make"}, Cwd: "/work"})
	host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
	return nil
}

// A task with a question. Options.Command starts codex-mcp in place of the server of this
// program.
func Example() {
	ctx := context.Background()
	c, err := client.Start(ctx, &client.Options{
		Server: codexserver.New(engine.TurnFunc(builder), nil),
		Ask: func(_ context.Context, q *client.Question) elicit.Outcome {
			fmt.Println(q.Message)
			return elicit.Outcome{Decision: elicit.Approved}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	r, err := c.Run(ctx, client.Task{Prompt: "Build it."})
	fmt.Println(r.Status, r.Answer, err)
	// Output:
	// Allow Codex to run `make` in `/work`?
	// completed approved <nil>
}

// Several tasks at a time, whose results come as they end.
func ExampleClient_Call() {
	ctx := context.Background()
	c, err := client.Start(ctx, &client.Options{Command: exec.Command("codex-mcp")})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, prompt := range []string{"Find unused code.", "List the flaky tests."} {
		if err := c.Call(ctx, "codex", map[string]any{"prompt": prompt, "worktree": true, "background": true}, nil); err != nil {
			log.Print(err)
		}
	}
	for {
		var r struct {
			Threads []protocol.TurnResult `json:"threads"`
		}
		if err := c.Call(ctx, "codex-wait", nil, &r); err != nil || len(r.Threads) == 0 {
			return
		}
		for _, turn := range r.Threads {
			if turn.Status.Ended() {
				fmt.Println(turn.ThreadID, turn.Content)
			}
		}
	}
}

// A task that outlives this program: the next run asks for the result.
func ExampleClient_Resume() {
	const file = "task.txt"
	ctx := context.Background()
	c, err := client.Start(ctx, &client.Options{URL: "http://127.0.0.1:4517/mcp", Token: os.Getenv("TOKEN")})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	var r client.Result
	if id, err := os.ReadFile(file); err == nil {
		r, err = c.Resume(ctx, string(id), client.Watch{})
	} else {
		keep := func(id string) { _ = os.WriteFile(file, []byte(id), 0o600) }
		r, err = c.Run(ctx, client.Task{Prompt: "Upgrade every dependency.", Watch: client.Watch{Started: keep}})
	}
	var lost *client.LostError
	switch {
	case errors.As(err, &lost):
		log.Print("it may have run; conversation ", lost.Thread)
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println(r.Answer)
	}
}
