package main

import (
	"context"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/creachadair/jrpc2/handler"
)

var jrpc2Peer = &peer{name: "jrpc2", tools: jrpc2Tools, serve: serveJRPC2, dial: dialJRPC2}

func serveJRPC2(s *stream) {
	n := newCounter()
	m := handler.Map{
		"tools/call": handler.New(func(ctx context.Context, p callParams) (callResult, error) {
			switch p.Name {
			case "ask":
				rsp, err := jrpc2.ServerFromContext(ctx).Callback(ctx, "elicitation/create", question{p.Arguments.Text})
				if err != nil {
					return callResult{}, err
				}
				var d decision
				if err := rsp.UnmarshalResult(&d); err != nil {
					return callResult{}, err
				}
				return result(d.Action), nil
			case "count":
				n.wait(p.Arguments.Count)
			}
			return result(p.Arguments.Text), nil
		}),
		"notifications/progress": handler.New(func(context.Context, progress) error { n.add(); return nil }),
	}
	_ = jrpc2.NewServer(m, &jrpc2.ServerOptions{AllowPush: true, Concurrency: 128}).Start(channel.Line(s, s)).Wait()
}

type jrpc2Client struct{ c *jrpc2.Client }

func dialJRPC2(s *stream) caller {
	return &jrpc2Client{jrpc2.NewClient(channel.Line(s, s), &jrpc2.ClientOptions{
		OnCallback: handler.New(func(context.Context, question) (decision, error) { return decision{"accept"}, nil }),
	})}
}

func (c *jrpc2Client) echo(text string) (string, error) {
	var r callResult
	if err := c.c.CallResult(context.Background(), "tools/call", call("echo", text, 0), &r); err != nil {
		return "", err
	}
	return r.Content[0].Text, nil
}

func (c *jrpc2Client) ask(text string) error {
	var r callResult
	return c.c.CallResult(context.Background(), "tools/call", call("ask", text, 0), &r)
}

func (c *jrpc2Client) notify(text string) error {
	return c.c.Notify(context.Background(), "notifications/progress", progress{"p", 1, text})
}

func (c *jrpc2Client) counted(n int) error {
	_, err := c.c.Call(context.Background(), "tools/call", call("count", "", n))
	return err
}
