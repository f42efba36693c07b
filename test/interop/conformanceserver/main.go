// Command conformanceserver is an MCP server of version 2026-07-28 that has, by the names
// it asks for, what the official conformance suite calls: tools that ask in their
// results, tools that become tasks, a prompt and a resource. It is made of packages
// jsonrpc, mcptypes/modern and elicit alone, and shows how a server of this version is
// written on them:
//
//	server.go  the methods, and what every request must say
//	call.go    a call that asks, and is repeated with the answers
//	round.go   the open rounds of calls, by requestState
//	task.go    calls that continue as tasks
//	listen.go  subscriptions
//	skill.go   an extension that the types do not have
//	tool.go    the tools; job.go those that are tasks; content.go the rest
//	http.go    Streamable HTTP
//
// It speaks on standard input and output, or over HTTP at the address of -listen, and
// there the versions with a handshake too, which package legacy has. Nothing in a server
// belongs to a connection, so any transport can serve it to any number of peers.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	address := flag.String("listen", "", "serve HTTP at this address, and print its URL")
	flag.Parse()
	var err error
	if *address != "" {
		err = serveHTTP(ctx, *address)
	} else {
		err = serve(ctx, jsonrpc.Stdio())
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "conformanceserver:", err)
		os.Exit(1)
	}
}

// serve serves one connection with a server of its own, to the end.
func serve(ctx context.Context, t jsonrpc.Transport) error {
	s := newServer()
	defer s.close()
	return jsonrpc.NewPeer(t, s, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel}).Run(ctx)
}
