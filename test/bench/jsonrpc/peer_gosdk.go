package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var gosdkPeer = &peer{name: "go-sdk", tools: gosdkTools, serve: serveGoSDK, dial: dialGoSDK}

func gosdkTransport(s *stream) mcp.Transport {
	return &mcp.IOTransport{Reader: io.NopCloser(s), Writer: s, MaxLineLength: 8 << 20}
}

func serveGoSDK(s *stream) {
	n := newCounter()
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, &mcp.ServerOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationServerRequest) { n.add() },
	})
	schema := json.RawMessage(`{"type":"object"}`)
	tool := func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var a arguments
		if err := json.Unmarshal(r.Params.Arguments, &a); err != nil {
			return nil, err
		}
		text := a.Text
		switch r.Params.Name {
		case "ask":
			d, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: a.Text, RequestedSchema: schema})
			if err != nil {
				return nil, err
			}
			text = d.Action
		case "count":
			n.wait(a.Count)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	}
	for _, name := range []string{"echo", "ask", "count"} {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: schema}, tool)
	}
	_ = server.Run(context.Background(), gosdkTransport(s))
}

type gosdkClient struct{ s *mcp.ClientSession }

func dialGoSDK(s *stream) caller {
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	return &gosdkClient{must(c.Connect(context.Background(), gosdkTransport(s),
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"}))}
}

func (c *gosdkClient) tool(name, text string, n int) (string, error) {
	r, err := c.s.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: arguments{text, n}})
	if err != nil {
		return "", err
	}
	return r.Content[0].(*mcp.TextContent).Text, nil
}

func (c *gosdkClient) echo(text string) (string, error) { return c.tool("echo", text, 0) }

func (c *gosdkClient) ask(text string) error {
	_, err := c.tool("ask", text, 0)
	return err
}

func (c *gosdkClient) notify(text string) error {
	return c.s.NotifyProgress(context.Background(),
		&mcp.ProgressNotificationParams{ProgressToken: "p", Progress: 1, Message: text})
}

func (c *gosdkClient) counted(n int) error {
	_, err := c.tool("count", "", n)
	return err
}
