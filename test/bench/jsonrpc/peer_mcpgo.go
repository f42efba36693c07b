package main

import (
	"context"
	"io"
	"log"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

var mcpgoPeer = &peer{name: "mcp-go", tools: mcpgoTools, serve: serveMCPGo, dial: dialMCPGo}

func serveMCPGo(s *stream) {
	n := newCounter()
	srv := server.NewMCPServer("bench", "1", server.WithElicitation())
	tool := func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text := r.GetString("text", "")
		switch r.Params.Name {
		case "ask":
			var q mcp.ElicitationRequest
			q.Params.Message = text
			q.Params.RequestedSchema = map[string]any{"type": "object"}
			d, err := srv.RequestElicitation(ctx, q)
			if err != nil {
				return nil, err
			}
			text = string(d.Action)
		case "count":
			n.wait(r.GetInt("count", 0))
		}
		return mcp.NewToolResultText(text), nil
	}
	for _, name := range []string{"echo", "ask", "count"} {
		srv.AddTool(mcp.NewTool(name), tool)
	}
	srv.AddNotificationHandler("notifications/progress", func(context.Context, mcp.JSONRPCNotification) { n.add() })
	stdio := server.NewStdioServer(srv)
	for _, o := range []server.StdioOption{server.WithWorkerPoolSize(100), server.WithQueueSize(10000),
		server.WithErrorLogger(log.New(io.Discard, "", 0))} {
		o(stdio)
	}
	_ = stdio.Listen(context.Background(), s, s)
}

type accepter struct{}

func (accepter) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	r := new(mcp.ElicitationResult)
	r.Action = mcp.ElicitationResponseActionAccept
	return r, nil
}

type mcpgoClient struct {
	c *client.Client
	t *transport.Stdio
}

func dialMCPGo(s *stream) caller {
	t := transport.NewIO(s, s, io.NopCloser(strings.NewReader("")))
	c := client.NewClient(t, client.WithElicitationHandler(accepter{}))
	ctx := context.Background()
	check(c.Start(ctx))
	var init mcp.InitializeRequest
	init.Params.ProtocolVersion = "2025-06-18"
	init.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	must(c.Initialize(ctx, init))
	return &mcpgoClient{c, t}
}

func (c *mcpgoClient) tool(name, text string, n int) (string, error) {
	var r mcp.CallToolRequest
	r.Params.Name = name
	r.Params.Arguments = arguments{text, n}
	res, err := c.c.CallTool(context.Background(), r)
	if err != nil {
		return "", err
	}
	return res.Content[0].(mcp.TextContent).Text, nil
}

func (c *mcpgoClient) echo(text string) (string, error) { return c.tool("echo", text, 0) }

func (c *mcpgoClient) ask(text string) error {
	_, err := c.tool("ask", text, 0)
	return err
}

func (c *mcpgoClient) notify(text string) error {
	n := mcp.JSONRPCNotification{JSONRPC: "2.0"}
	n.Method = "notifications/progress"
	n.Params.AdditionalFields = map[string]any{"progressToken": "p", "progress": 1, "message": text}
	return c.t.SendNotification(context.Background(), n)
}

func (c *mcpgoClient) counted(n int) error {
	_, err := c.tool("count", "", n)
	return err
}
