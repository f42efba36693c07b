package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const ours = "streamable"

// peer is a package whose server is measured.
type peer struct {
	name  string
	serve func(today bool) http.Handler // for MCP 2026-07-28 or for sessions
}

var peers = []peer{
	{ours, serveOurs},
	{"go-sdk", func(today bool) http.Handler { return serveSDK(today, false) }},
	{"go-sdk, JSON", func(today bool) http.Handler { return serveSDK(today, true) }},
}

const schema = `{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`

type arguments struct {
	Text string `json:"text"`
}

// service is the server of a principal.
type service struct{ old, today *jsonrpc.Mux }

func serveOurs(bool) http.Handler {
	s := service{&jsonrpc.Mux{}, &jsonrpc.Mux{}}
	mcptypes.Initialize.Handle(s.old, func(_ context.Context, p *mcptypes.InitializeRequestParams) (*mcptypes.InitializeResult, error) {
		return &mcptypes.InitializeResult{
			ProtocolVersion: p.ProtocolVersion, ServerInfo: mcptypes.Implementation{Name: "bench", Version: "1"},
			Capabilities: mcptypes.ServerCapabilities{Tools: &mcptypes.ServerCapabilitiesTools{}},
		}, nil
	})
	mcptypes.Ping.Handle(s.old, func(context.Context, *mcptypes.PingRequestParams) (*mcptypes.EmptyResult, error) {
		return &mcptypes.EmptyResult{}, nil
	})
	mcptypes.ToolsList.Handle(s.old, func(context.Context, *mcptypes.ListToolsRequestParams) (*mcptypes.ListToolsResult, error) {
		return &mcptypes.ListToolsResult{Tools: []mcptypes.Tool{{Name: "echo", Description: new("repeats a text"), InputSchema: json.RawMessage(schema)}}}, nil
	})
	mcptypes.ToolsCall.Handle(s.old, func(_ context.Context, p *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult, error) {
		var a arguments
		if err := json.Unmarshal(p.Arguments, &a); err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/arguments: %v", err)
		}
		return &mcptypes.CallToolResult{Content: mcptypes.Text(a.Text)}, nil
	})
	modern.ToolsCall.Handle(s.today, func(_ context.Context, p *modern.CallToolRequestParams) (modern.AnyCallToolResult, error) {
		var a arguments
		if err := json.Unmarshal(p.Arguments, &a); err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/arguments: %v", err)
		}
		return &modern.CallToolResult{Content: modern.Text(a.Text)}, nil
	})
	return must(mcphttp.New(func(context.Context, string) mcphttp.Service { return s }, &mcphttp.Options{
		MaxSessions:  1 << 20,
		Authenticate: func(*http.Request) (mcphttp.Principal, error) { return mcphttp.Principal{Name: "bench"}, nil },
	}))
}

// Serve implements [mcphttp.Service].
func (s service) Serve(ctx context.Context, t jsonrpc.Transport) error {
	return jsonrpc.NewPeer(t, s.old, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel}).Run(ctx)
}

// Exchange implements [mcphttp.Service].
func (s service) Exchange(ctx context.Context, t jsonrpc.Transport) error {
	return jsonrpc.NewPeer(t, s.today, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel, DrainTimeout: -1}).Run(ctx)
}

// Busy implements [mcphttp.Service].
func (s service) Busy() bool { return false }

// Parked implements [mcphttp.Service].
func (s service) Parked() bool { return false }

// Reads implements [mcphttp.Service].
func (s service) Reads(string) bool { return false }

// Close implements [mcphttp.Service].
func (s service) Close() error { return nil }

// serveSDK answers with JSON, or with streams, which is the default of the SDK. The SDK serves
// MCP 2026-07-28 if it is stateless.
func serveSDK(stateless, asJSON bool) http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "echo", Description: "repeats a text", InputSchema: json.RawMessage(schema)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var a arguments
			if err := json.Unmarshal(r.Params.Arguments, &a); err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}, nil
		})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless, JSONResponse: asJSON})
}
