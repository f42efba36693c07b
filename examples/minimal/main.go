// Command minimal is an MCP server in ten lines: it says who it is, it has a tool, and the tool asks the user. They are
// those of serve, but for closing brackets. contrib/examples/gosdk/minimal has eight with the official Go SDK, which
// makes the handshake and the list of tools itself.
//
// Start it in a terminal and paste these lines one at a time. The last one is your answer.
//
//	{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"me","version":"1"}}}
//	{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"launch"}}
//	{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}
package main

import (
	"context"
	"log"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

func main() {
	log.Fatal(serve(context.Background(), jsonrpc.Stdio()))
}

func serve(ctx context.Context, t jsonrpc.Transport) error {
	mux, client := new(jsonrpc.Mux), elicit.Client{ProtocolVersion: mcptypes.ProtocolVersion}
	mcptypes.Initialize.Handle(mux, func(_ context.Context, p *mcptypes.InitializeRequestParams) (*mcptypes.InitializeResult, error) {
		client.Capabilities, client.Name = p.Capabilities, p.ClientInfo.Name
		return &mcptypes.InitializeResult{ProtocolVersion: mcptypes.ProtocolVersion, Capabilities: mcptypes.ServerCapabilities{Tools: &mcptypes.ServerCapabilitiesTools{}}, ServerInfo: mcptypes.Implementation{Name: "minimal", Version: "1"}}, nil
	})
	mcptypes.ToolsList.Handle(mux, func(context.Context, *mcptypes.ListToolsRequestParams) (*mcptypes.ListToolsResult, error) {
		return &mcptypes.ListToolsResult{Tools: []mcptypes.Tool{{Name: "launch", InputSchema: []byte(`{"type":"object"}`)}}}, nil
	})
	mcptypes.ToolsCall.Handle(mux, func(ctx context.Context, _ *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult, error) {
		out := elicit.NewAsker(jsonrpc.RequestFrom(ctx).Peer(), client, nil).Ask(ctx, &elicit.Question{Message: "Launch it?"})
		return &mcptypes.CallToolResult{Content: mcptypes.Text(string(out.Decision))}, nil
	})
	return jsonrpc.NewPeer(t, mux, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel, Inline: jsonrpc.Methods("initialize")}).Run(ctx)
}
