// Command minimal is an MCP server in twenty lines: it has a tool, and the tool asks the user. contrib/examples/gosdk/minimal
// is the same with the official Go SDK.
//
// Start it in a terminal and paste these lines one at a time. The last one is your answer.
//
//	{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"me","version":"1"}}}
//	{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"launch"}}
//	{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}
package main

import (
	"context"
	"encoding/json"
	"log"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/elicit/toolserver"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

func main() {
	if err := serve(context.Background(), jsonrpc.Stdio()); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, t jsonrpc.Transport) error {
	launch := toolserver.Tool{
		Tool: mcptypes.Tool{Name: "launch", Description: new("Launches it, if the user allows it.")},
		Call: func(ctx context.Context, s *toolserver.Server, _ json.RawMessage) (*mcptypes.CallToolResult, error) {
			out := s.Ask(ctx, &elicit.Question{Message: "Launch it?"})
			return &mcptypes.CallToolResult{Content: mcptypes.Text(string(out.Decision))}, nil
		},
	}
	return toolserver.New("minimal", "1", launch).Run(ctx, t)
}
