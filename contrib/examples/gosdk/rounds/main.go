// Command rounds is an MCP server on the official Go SDK with one tool, delete_branch, that
// asks the user before it acts as in MCP 2026-07-28: the result of the call is the question,
// and the client repeats the call with the answer. Package elicit builds the question and
// reads the answer. For a client with an older version, the SDK sends the question as a
// request and calls the tool again with the answer.
//
// Configure it in an MCP client that supports elicitation. -repo is the repository whose
// branches it may delete. From the folder contrib/examples/gosdk:
//
//	go run ./rounds -repo /path/to/repository
//
// It ends when its input ends, or on Ctrl-C.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	repo := flag.String("repo", ".", "the git repository `folder`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		dir, err := filepath.Abs(*repo)
		if err == nil {
			err = newServer(dir).Run(ctx, &mcp.StdioTransport{})
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "rounds:", err)
			os.Exit(1)
		}
	case <-ctx.Done(): // the SDK would wait for what an older client answers
	}
}
