// Command taskserver is a server of the official SDK with tasks, with the tools that MCP's
// conformance suite calls to test them. It serves over HTTP, and prints its address; with
// -listen="" it serves over its standard streams.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/contrib/gosdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to serve HTTP at; empty for the standard streams")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, listen string) error {
	tasks := gosdk.New(&gosdk.Options{Poll: 100 * time.Millisecond})
	defer tasks.Close()
	s, err := newServer(tasks)
	if err != nil {
		return err
	}
	if listen == "" {
		return s.Run(ctx, &mcp.StdioTransport{})
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", l.Addr())
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
