package main

import (
	"context"
	"encoding/json"

	"github.com/sourcegraph/jsonrpc2"
)

var sourcegraphPeer = &peer{name: "sourcegraph", tools: serveSourcegraphTools, serve: serveSourcegraph,
	dial: dialSourcegraph}

// sgHandler handles notifications on the read loop, which keeps their order, and each request
// on its own goroutine.
type sgHandler struct{ n *counter }

func (h sgHandler) Handle(ctx context.Context, c *jsonrpc2.Conn, r *jsonrpc2.Request) {
	if r.Notif {
		var p progress
		check(json.Unmarshal(*r.Params, &p))
		h.n.add()
		return
	}
	go func() { check(c.Reply(ctx, r.ID, h.answer(ctx, c, r))) }()
}

func (h sgHandler) answer(ctx context.Context, c *jsonrpc2.Conn, r *jsonrpc2.Request) any {
	if r.Method == "elicitation/create" {
		var q question
		check(json.Unmarshal(*r.Params, &q))
		return decision{"accept"}
	}
	var p callParams
	check(json.Unmarshal(*r.Params, &p))
	switch p.Name {
	case "ask":
		var d decision
		check(c.Call(ctx, "elicitation/create", question{p.Arguments.Text}, &d))
		return result(d.Action)
	case "count":
		h.n.wait(p.Arguments.Count)
	}
	return result(p.Arguments.Text)
}

func newSourcegraph(s *stream) *jsonrpc2.Conn {
	return jsonrpc2.NewConn(context.Background(), jsonrpc2.NewPlainObjectStream(s), sgHandler{newCounter()})
}

func serveSourcegraph(s *stream) { <-newSourcegraph(s).DisconnectNotify() }

type sgClient struct{ c *jsonrpc2.Conn }

func dialSourcegraph(s *stream) caller { return &sgClient{newSourcegraph(s)} }

func (c *sgClient) echo(text string) (string, error) {
	var r callResult
	if err := c.c.Call(context.Background(), "tools/call", call("echo", text, 0), &r); err != nil {
		return "", err
	}
	return r.Content[0].Text, nil
}

func (c *sgClient) ask(text string) error {
	var r callResult
	return c.c.Call(context.Background(), "tools/call", call("ask", text, 0), &r)
}

func (c *sgClient) notify(text string) error {
	return c.c.Notify(context.Background(), "notifications/progress", progress{"p", 1, text})
}

func (c *sgClient) counted(n int) error {
	return c.c.Call(context.Background(), "tools/call", call("count", "", n), nil)
}
