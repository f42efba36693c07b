package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/test/interop/conformanceserver/legacy"
)

// service is what a principal of an HTTP server has: both eras of MCP.
type service struct{ *server }

// Serve implements [mcphttp.Service].
func (s service) Serve(ctx context.Context, t jsonrpc.Transport) error { return legacy.Serve(ctx, t) }

// Exchange implements [mcphttp.Service].
func (s service) Exchange(ctx context.Context, t jsonrpc.Transport) error {
	return jsonrpc.NewPeer(t, s.server, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel, DrainTimeout: -1}).Run(ctx)
}

// Busy implements [mcphttp.Service].
func (s service) Busy() bool { return false }

// Parked implements [mcphttp.Service].
func (s service) Parked() bool { return false }

// Reads implements [mcphttp.Service].
func (s service) Reads(string) bool { return false }

// Close implements [mcphttp.Service].
func (s service) Close() error {
	s.close()
	return nil
}

// serveHTTP serves both eras over HTTP until ctx ends. Every client that reaches it may
// use it.
func serveHTTP(ctx context.Context, address string) error {
	handler, err := mcphttp.New(func(context.Context, string) mcphttp.Service { return service{newServer()} },
		&mcphttp.Options{
			Authenticate: func(*http.Request) (mcphttp.Principal, error) {
				return mcphttp.Principal{Name: "everyone"}, nil
			},
		})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, handler.Close())
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	fmt.Printf("http://%s/\n", l.Addr())
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	return errors.Join(err, handler.Close(), s.Close())
}
