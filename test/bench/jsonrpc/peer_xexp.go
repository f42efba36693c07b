package main

import (
	"context"
	"encoding/json"
	"io"

	"golang.org/x/exp/jsonrpc2"
)

var xexpPeer = &peer{name: "x/exp", tools: serveXexpTools, serve: serveXexp, dial: dialXexp}

// lineFramer is the package's raw framing with a line feed after each message.
type lineFramer struct{}

func (lineFramer) Reader(r io.Reader) jsonrpc2.Reader { return jsonrpc2.RawFramer().Reader(r) }
func (lineFramer) Writer(w io.Writer) jsonrpc2.Writer { return lineFrames{w} }

type lineFrames struct{ w io.Writer }

func (f lineFrames) Write(_ context.Context, m jsonrpc2.Message) (int64, error) {
	b, err := jsonrpc2.EncodeMessage(m)
	if err != nil {
		return 0, err
	}
	n, err := f.w.Write(append(b, '\n'))
	return int64(n), err
}

// xexpHandler answers each request from its own goroutine.
type xexpHandler struct {
	n *counter
	c *jsonrpc2.Connection
}

func (h *xexpHandler) Bind(_ context.Context, c *jsonrpc2.Connection) (jsonrpc2.ConnectionOptions, error) {
	h.c = c
	return jsonrpc2.ConnectionOptions{Framer: lineFramer{}, Handler: h}, nil
}

func (h *xexpHandler) Handle(ctx context.Context, r *jsonrpc2.Request) (any, error) {
	if !r.IsCall() {
		var p progress
		check(json.Unmarshal(r.Params, &p))
		h.n.add()
		return nil, nil
	}
	go func() { check(h.c.Respond(r.ID, h.answer(ctx, r), nil)) }()
	return nil, jsonrpc2.ErrAsyncResponse
}

func (h *xexpHandler) answer(ctx context.Context, r *jsonrpc2.Request) any {
	if r.Method == "elicitation/create" {
		var q question
		check(json.Unmarshal(r.Params, &q))
		return decision{"accept"}
	}
	var p callParams
	check(json.Unmarshal(r.Params, &p))
	switch p.Name {
	case "ask":
		var d decision
		check(h.c.Call(ctx, "elicitation/create", question{p.Arguments.Text}).Await(ctx, &d))
		return result(d.Action)
	case "count":
		h.n.wait(p.Arguments.Count)
	}
	return result(p.Arguments.Text)
}

type oneStream struct{ s *stream }

func (d oneStream) Dial(context.Context) (io.ReadWriteCloser, error) { return d.s, nil }

func newXexp(s *stream) *jsonrpc2.Connection {
	return must(jsonrpc2.Dial(context.Background(), oneStream{s}, &xexpHandler{n: newCounter()}))
}

func serveXexp(s *stream) { _ = newXexp(s).Wait() }

type xexpClient struct{ c *jsonrpc2.Connection }

func dialXexp(s *stream) caller { return &xexpClient{newXexp(s)} }

func (c *xexpClient) call(p callParams, r any) error {
	ctx := context.Background()
	return c.c.Call(ctx, "tools/call", p).Await(ctx, r)
}

func (c *xexpClient) echo(text string) (string, error) {
	var r callResult
	if err := c.call(call("echo", text, 0), &r); err != nil {
		return "", err
	}
	return r.Content[0].Text, nil
}

func (c *xexpClient) ask(text string) error {
	var r callResult
	return c.call(call("ask", text, 0), &r)
}

func (c *xexpClient) notify(text string) error {
	return c.c.Notify(context.Background(), "notifications/progress", progress{"p", 1, text})
}

func (c *xexpClient) counted(n int) error {
	var r callResult
	return c.call(call("count", "", n), &r)
}
