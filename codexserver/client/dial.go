package client

import (
	"context"
	"errors"
	"os/exec"

	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// dialer returns the function that opens a connection to the server.
func (o *Options) dialer() (func(context.Context) (jsonrpc.Transport, error), error) {
	var ways []func(context.Context) (jsonrpc.Transport, error)
	if o.Command != nil {
		ways = append(ways, o.child)
	}
	if o.Server != nil {
		ways = append(ways, func(context.Context) (jsonrpc.Transport, error) {
			return mcpcall.Join(func(ctx context.Context, t jsonrpc.Transport) error { return o.Server.Serve(ctx, t) }), nil
		})
	}
	if o.URL != "" {
		ways = append(ways, o.http)
	}
	if o.Dial != nil {
		ways = append(ways, o.Dial)
	}
	if len(ways) != 1 {
		return nil, errors.New("client: set one of Options.Command, Server, URL and Dial")
	}
	return ways[0], nil
}

// child starts a copy of the command.
func (o *Options) child(context.Context) (jsonrpc.Transport, error) {
	c := o.Command
	return jsonrpc.Command(&exec.Cmd{
		Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		ExtraFiles: c.ExtraFiles, SysProcAttr: c.SysProcAttr, Err: c.Err,
	}, 0)
}

func (o *Options) http(context.Context) (jsonrpc.Transport, error) {
	return mcpcall.HTTP(&mcphttp.ProxyOptions{URL: o.URL, Token: o.Token})
}
