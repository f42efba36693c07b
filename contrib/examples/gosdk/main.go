// Command gosdk drives codex-mcp with the client of the official Go SDK. It hands Codex a
// task, answers its questions, and sends a second prompt in the same conversation. The
// protocol is MCP 2026-07-28, where the result of a call may be a question. The SDK passes
// it to the elicitation handler and repeats the call with the answer, so that this program
// makes one call.
//
// From the folder contrib/examples/gosdk:
//
//	go run . -answer accept "run git init" "what did you do?"
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

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	server := flag.String("server", "codex-mcp", "the server's `program`")
	answer := flag.String("answer", "decline", "how to answer questions: `accept, decline or cancel`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cmd := exec.Command(*server)
	cmd.Stderr = os.Stderr
	err := run(ctx, &mcp.CommandTransport{Command: cmd}, *answer, flag.Args(), os.Stdout)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "gosdk:", err)
		os.Exit(1)
	}
}

// run connects over t and sends the prompts one after another in one conversation.
func run(ctx context.Context, t mcp.Transport, answer string, prompts []string, out io.Writer) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "gosdk-example", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Fprintf(out, "? %s %s\n", r.Params.Message, answer)
			return &mcp.ElicitResult{Action: answer}, nil
		},
	})
	session, err := client.Connect(ctx, t, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	err = converse(ctx, session, prompts, out)
	return errors.Join(err, session.Close())
}

func converse(ctx context.Context, session *mcp.ClientSession, prompts []string, out io.Writer) error {
	fmt.Fprintln(out, "MCP", session.InitializeResult().ProtocolVersion)
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("list tools: %w", err)
	}
	for _, tool := range tools.Tools {
		fmt.Fprintln(out, "tool", tool.Name)
	}
	call := &mcp.CallToolParams{Name: "codex"}
	arguments := map[string]any{}
	for _, prompt := range prompts {
		arguments["prompt"] = prompt
		call.Arguments = arguments
		result, err := session.CallTool(ctx, call)
		if err != nil {
			return fmt.Errorf("%s: %w", call.Name, err)
		}
		// The SDK does not pass on codex/event, which has the conversation's id.
		// structuredContent has it too.
		content, _ := result.StructuredContent.(map[string]any)
		fmt.Fprintf(out, "> %s\n%v\n", prompt, content["content"])
		if result.IsError {
			return fmt.Errorf("%s: %v", call.Name, content["content"])
		}
		call = &mcp.CallToolParams{Name: "codex-reply"}
		arguments = map[string]any{"threadId": content["threadId"]}
	}
	return nil
}
