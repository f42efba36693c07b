package main

import (
	"bytes"
	"context"
	"io"
	"os"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// oursPeer handles requests on goroutines, and notifications on the reader, as lspdevPeer does.
var oursPeer = &peer{
	name:  "jsonrpc",
	tools: oursTools,
	serve: func(s *stream) { serveOurs(oursTransport(s), (*jsonrpc.Request).IsNotification) },
	dial:  dialPlain,
}

// linesPeer is oursPeer with Lines over the standard streams of the child instead of Stdio.
var linesPeer = &peer{name: "lines", serve: serveLines, dial: dialPlain}

// inlinePeer is oursPeer with the echo and the answer to a question declared as short, too: the reader handles them.
var inlinePeer = &peer{
	name:  "jsonrpc" + inlineMode,
	serve: func(s *stream) { serveOurs(oursTransport(s), inlineEcho) },
	dial: func(s *stream) caller {
		return dialOurs(s, func(r *jsonrpc.Request) bool { return r.Method == "elicitation/create" })
	},
}

// inlineEcho chooses what lspdevInlinePeer handles on the reader.
func inlineEcho(r *jsonrpc.Request) bool {
	return r.IsNotification() || bytes.Contains(r.Params, []byte(`"name":"echo"`))
}

func oursTransport(s *stream) jsonrpc.Transport {
	if s.Reader == io.Reader(os.Stdin) {
		return jsonrpc.Stdio()
	}
	return jsonrpc.Lines(s.Reader, s.Writer, s)
}

func serveLines(s *stream) {
	serveOurs(jsonrpc.Lines(s.Reader, s.Writer, s), (*jsonrpc.Request).IsNotification)
}

func dialPlain(s *stream) caller { return dialOurs(s, nil) }

func serveOurs(t jsonrpc.Transport, inline func(*jsonrpc.Request) bool) {
	n := newCounter()
	m := new(jsonrpc.Mux)
	m.Handle("tools/call", jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		var p callParams
		if err := r.Bind(&p); err != nil {
			return nil, err
		}
		switch p.Name {
		case "ask":
			var d decision
			if err := r.Peer().Call(ctx, "elicitation/create", question{p.Arguments.Text}, &d); err != nil {
				return nil, err
			}
			return result(d.Action), nil
		case "count":
			n.wait(p.Arguments.Count)
		}
		return result(p.Arguments.Text), nil
	}))
	jsonrpc.HandleNotify(m, "notifications/progress", func(context.Context, progress) error { n.add(); return nil })
	o := &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel, Inline: inline}
	_ = jsonrpc.NewPeer(t, m, o).Run(context.Background())
}

type oursClient struct{ p *jsonrpc.Peer }

func dialOurs(s *stream, inline func(*jsonrpc.Request) bool) caller {
	m := new(jsonrpc.Mux)
	jsonrpc.Handle(m, "elicitation/create", func(context.Context, question) (decision, error) {
		return decision{"accept"}, nil
	})
	o := &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel, Inline: inline}
	p := jsonrpc.NewPeer(jsonrpc.Lines(s.Reader, s.Writer, s), m, o)
	go func() { _ = p.Run(context.Background()) }()
	return &oursClient{p}
}

func (c *oursClient) echo(text string) (string, error) {
	var r callResult
	if err := c.p.Call(context.Background(), "tools/call", call("echo", text, 0), &r); err != nil {
		return "", err
	}
	return r.Content[0].Text, nil
}

func (c *oursClient) ask(text string) error {
	var r callResult
	return c.p.Call(context.Background(), "tools/call", call("ask", text, 0), &r)
}

func (c *oursClient) notify(text string) error {
	return c.p.Notify(context.Background(), "notifications/progress", progress{"p", 1, text})
}

func (c *oursClient) counted(n int) error {
	return c.p.Call(context.Background(), "tools/call", call("count", "", n), nil)
}
