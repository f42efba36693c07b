package main

import (
	"context"

	"github.com/go-json-experiment/json"
	"go.lsp.dev/jsonrpc2"
)

// lspdevPeer handles each request on a goroutine, and lspdevInlinePeer on the reader, except what waits. Both handle
// notifications on the reader.
var (
	lspdevPeer       = newLspdevPeer("lsp.dev", false)
	lspdevInlinePeer = newLspdevPeer("lsp.dev"+inlineMode, true)
)

func newLspdevPeer(name string, inline bool) *peer {
	return &peer{
		name:  name,
		tools: lspdevTools(inline),
		serve: func(s *stream) { <-newLspdev(s, inline).Done() },
		dial:  func(s *stream) caller { return &lspdevClient{newLspdev(s, inline)} },
	}
}

func newLspdev(s *stream, inline bool) jsonrpc2.Conn {
	c := jsonrpc2.NewConn(jsonrpc2.NewNDJSONStream(s))
	h := &lspdevHandler{newCounter(), c, inline}
	c.Go(context.Background(), h.handle)
	return c
}

type lspdevHandler struct {
	n      *counter
	c      jsonrpc2.Conn
	inline bool
}

func (h *lspdevHandler) handle(ctx context.Context, r *jsonrpc2.Request) (any, error) {
	if !r.IsCall() {
		var p progress
		check(json.Unmarshal(r.Params(), &p))
		h.n.add()
		return nil, nil
	}
	if !h.inline {
		jsonrpc2.Async(ctx)
	}
	if r.Method() == "elicitation/create" {
		var q question
		check(json.Unmarshal(r.Params(), &q))
		return decision{"accept"}, nil
	}
	var p callParams
	check(json.Unmarshal(r.Params(), &p))
	if h.inline && p.Name != "echo" {
		jsonrpc2.Async(ctx)
	}
	switch p.Name {
	case "ask":
		var d decision
		if _, err := h.c.Call(ctx, "elicitation/create", question{p.Arguments.Text}, &d); err != nil {
			return nil, err
		}
		return result(d.Action), nil
	case "count":
		h.n.wait(p.Arguments.Count)
	}
	return result(p.Arguments.Text), nil
}

type lspdevClient struct{ c jsonrpc2.Conn }

func (c *lspdevClient) call(p callParams, r *callResult) error {
	_, err := c.c.Call(context.Background(), "tools/call", p, r)
	return err
}

func (c *lspdevClient) echo(text string) (string, error) {
	var r callResult
	if err := c.call(call("echo", text, 0), &r); err != nil {
		return "", err
	}
	return r.Content[0].Text, nil
}

func (c *lspdevClient) ask(text string) error { return c.call(call("ask", text, 0), new(callResult)) }

func (c *lspdevClient) notify(text string) error {
	return c.c.Notify(context.Background(), "notifications/progress", progress{"p", 1, text})
}

func (c *lspdevClient) counted(n int) error { return c.call(call("count", "", n), new(callResult)) }
