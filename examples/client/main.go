// Command client talks with Codex in a terminal, and asks you its questions. It starts codex-mcp:
//
//	go run ./examples/client
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

func main() {
	cmd := exec.Command("codex-mcp", os.Args[1:]...)
	cmd.Stderr = os.Stderr
	if err := run(context.Background(), cmd, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// asker returns a function that asks a person for a line. Two questions may come at a time.
func asker(in io.Reader, out io.Writer) func(prompt string) string {
	lines, one := bufio.NewScanner(in), sync.Mutex{}
	return func(prompt string) string {
		one.Lock()
		defer one.Unlock()
		fmt.Fprint(out, prompt)
		lines.Scan()
		return lines.Text()
	}
}

// run sends the lines of a person to the model, until they end.
func run(ctx context.Context, cmd *exec.Cmd, in io.Reader, out io.Writer) error {
	ask := asker(in, out)
	decisions := map[string]elicit.Decision{"yes": elicit.Approved, "stop": elicit.Abort} // any other answer denies
	c, err := client.Start(ctx, &client.Options{Command: cmd,
		Ask: func(_ context.Context, q *client.Question) elicit.Outcome {
			return elicit.Outcome{Decision: decisions[ask(q.Message+" (yes, no, stop) ")]}
		}})
	if err != nil {
		return err
	}
	task := client.Task{Approvals: protocol.ApprovalUntrusted, Watch: client.Watch{Event: func(e client.Event) {
		if m, ok := e.Msg.(protocol.ExecCommandBegin); ok {
			fmt.Fprintln(out, "$", elicit.ShowCommand(m.Command)) // what a model wrote cannot control the terminal
		}
	}}}
	next := func() bool { task.Prompt = ask("> "); return task.Prompt != "" }
	for err == nil && next() {
		var r client.Result
		r, err = c.Run(ctx, task)
		task.Thread = r.ThreadID // the next line continues the conversation
		fmt.Fprintf(out, "%s: %s\n", r.Status, elicit.ShowText(r.Answer))
	}
	if closed := c.Close(); err == nil {
		err = closed
	}
	return err
}
