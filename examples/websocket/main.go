// Command websocket shows JSON-RPC over WebSocket, with an HTTP server and a client in one
// program. Both sides call each other: the client asks for a backup, and the server asks for
// a confirmation and reports its progress.
//
//	go run ./examples/websocket
//	go run ./examples/websocket -confirm=false
//
// It listens on a free port of the loopback interface and ends on its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
)

func main() {
	confirm := flag.Bool("confirm", true, "what the client answers when it is asked")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *confirm, os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "websocket:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, confirm bool, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	backups := &server{}
	web := &http.Server{
		Handler:     backups,
		BaseContext: func(net.Listener) context.Context { return ctx }, // ctrl-C ends the connections too
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()

	err = call(ctx, "ws://"+listener.Addr().String(), confirm, out)

	_ = web.Shutdown(ctx) // does not close WebSockets, so:
	backups.connections.Wait()
	<-served
	return err
}
