package client

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"sync"

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
			return joined(func(ctx context.Context, t jsonrpc.Transport) error { return o.Server.Serve(ctx, t) }), nil
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
	p := mcphttp.ProxyOptions{URL: o.URL, Token: o.Token}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return joined(func(ctx context.Context, t jsonrpc.Transport) error {
		proxy, err := mcphttp.NewProxy(t, &p)
		if err != nil {
			return errors.Join(err, t.Close())
		}
		return proxy.Run(ctx)
	}), nil
}

// joined runs serve with the other end of a transport. The transport's Close ends it and waits
// for it.
func joined(serve func(context.Context, jsonrpc.Transport) error) jsonrpc.Transport {
	ours, theirs := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() {
		err := serve(context.Background(), theirs)
		_ = theirs.Close() // the client sees the end, if it has not caused it
		served <- err
	}()
	return &joint{ours, sync.OnceValue(func() error {
		err := ours.Close()
		if end := <-served; !errors.Is(end, io.ErrClosedPipe) { // that is how this end closes
			err = errors.Join(err, end)
		}
		return err
	})}
}

type joint struct {
	jsonrpc.Transport
	close func() error
}

// Close implements [jsonrpc.Transport].
func (j *joint) Close() error { return j.close() }
