// Command minimal is examples/minimal of the main module with the official Go SDK: a server with a tool that asks the
// user. It has ten lines, those of newServer and the one that runs it, but for closing brackets.
package main

import (
	"context"
	"log"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "minimal", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "launch"},
		func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			answer, err := r.Session.Elicit(ctx,
				&mcp.ElicitParams{Message: "Launch it?", RequestedSchema: &jsonschema.Schema{Type: "object"}})
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer.Action}}}, nil, nil
		})
	return s
}
