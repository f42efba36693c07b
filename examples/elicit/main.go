// Command elicit is an MCP server with one tool, delete_branch, that asks the user before it
// acts. It shows elicitation in any MCP server, without Codex. Package jsonrpc carries the
// messages, mcptypes has their types, elicit asks and reads the answer.
// contrib/examples/gosdk/elicit does the same with the official SDK.
//
// Configure it in an MCP client that supports elicitation. -repo is the repository whose
// branches it may delete:
//
//	go run ./examples/elicit -repo /path/to/repository
//
// Or act as the client: start it in a terminal and paste these lines one at a time. The last
// one is your answer.
//
//	{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"me","version":"1"}}}
//	{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"delete_branch","arguments":{"branch":"old"}}}
//	{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}
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
	"syscall"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

func main() {
	repo := flag.String("repo", ".", "the git repository `folder`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := filepath.Abs(*repo)
	if err == nil {
		err = serve(ctx, jsonrpc.Stdio(), dir)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "elicit:", err)
		os.Exit(1)
	}
}
