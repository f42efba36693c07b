package toolserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/elicit/toolserver"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// client is at the other end of a server.
type client struct {
	*jsonrpc.Peer
	withdrawn chan error // why a question ended that it did not answer
}

// connect runs a server and returns a client of it that answers each question with the result, or never if there is none.
func connect(t *testing.T, s *toolserver.Server, result string) client {
	t.Helper()
	withdrawn := make(chan error, 1)
	ours, theirs := jsonrpc.Pipe()
	m := new(jsonrpc.Mux)
	m.HandleRaw("elicitation/create", func(ctx context.Context, _ json.RawMessage) (any, error) {
		if result == "" {
			<-ctx.Done()
			withdrawn <- context.Cause(ctx)
			return nil, ctx.Err()
		}
		return json.RawMessage(result), nil
	})
	peer := jsonrpc.NewPeer(ours, m, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	ended := make(chan error, 2)
	go func() { ended <- s.Run(context.Background(), theirs) }()
	go func() { ended <- peer.Run(context.Background()) }()
	t.Cleanup(func() {
		_ = peer.Close()
		must.OK(t, errors.Join(<-ended, <-ended))
	})
	return client{peer, withdrawn}
}

func initialize(t *testing.T, c client, version, capabilities string) string {
	t.Helper()
	var r struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	params := json.RawMessage(`{"protocolVersion":"` + version + `","capabilities":` + capabilities + `,"clientInfo":{"name":"t","version":"1"}}`)
	must.OK(t, c.Call(t.Context(), "initialize", params, &r))
	return r.ProtocolVersion
}

func text(s string) *mcptypes.CallToolResult {
	return &mcptypes.CallToolResult{Content: mcptypes.Text(s)}
}

var tools = []toolserver.Tool{
	{
		Tool: mcptypes.Tool{Name: "ask", Description: new("Asks.")},
		Call: func(ctx context.Context, s *toolserver.Server, _ json.RawMessage) (*mcptypes.CallToolResult, error) {
			out := s.Ask(ctx, &elicit.Question{Message: "Really?"})
			return text(string(out.Decision) + " " + string(out.Reason)), nil
		},
	}, {
		Tool: mcptypes.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object","required":["x"]}`)},
		Call: func(_ context.Context, _ *toolserver.Server, arguments json.RawMessage) (*mcptypes.CallToolResult, error) {
			return text(string(arguments)), nil
		},
	}, {
		Tool: mcptypes.Tool{Name: "fail"},
		Call: func(context.Context, *toolserver.Server, json.RawMessage) (*mcptypes.CallToolResult, error) {
			return nil, errors.New("no room")
		},
	}, {
		Tool: mcptypes.Tool{Name: "refuse"},
		Call: func(context.Context, *toolserver.Server, json.RawMessage) (*mcptypes.CallToolResult, error) {
			return nil, fmt.Errorf("it: %w", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "x is missing"))
		},
	}, {
		Tool: mcptypes.Tool{Name: "nothing"},
		Call: func(context.Context, *toolserver.Server, json.RawMessage) (*mcptypes.CallToolResult, error) {
			return nil, nil
		},
	},
}

// TestMethods checks the answer to each method.
func TestMethods(t *testing.T) {
	c := connect(t, toolserver.New("demo", "1.2", tools...), `{"action":"accept"}`)
	initialize(t, c, "2025-06-18", "{}")
	called := func(content string) string { return `{"content":[{"type":"text","text":` + content + `}]}` }
	for _, tt := range []struct{ method, params, want string }{
		{"ping", "", `{}`},
		{"initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`,
			`{"capabilities":{"tools":{}},"protocolVersion":"2025-06-18","serverInfo":{"name":"demo","version":"1.2"}}`},
		{"tools/list", "", `{"tools":[{"description":"Asks.","inputSchema":{"type":"object"},"name":"ask"},` +
			`{"inputSchema":{"type":"object","required":["x"]},"name":"echo"},{"inputSchema":{"type":"object"},"name":"fail"},` +
			`{"inputSchema":{"type":"object"},"name":"refuse"},{"inputSchema":{"type":"object"},"name":"nothing"}]}`},
		{"tools/call", `{"name":"echo","arguments":{"x":1}}`, called(`"{\"x\":1}"`)},
		{"tools/call", `{"name":"echo"}`, called(`"{}"`)},
		{"tools/call", `{"name":"fail"}`, `{"content":[{"type":"text","text":"no room"}],"isError":true}`},
		{"tools/call", `{"name":"refuse"}`, "x is missing (-32602)"},
		{"tools/call", `{"name":"nothing"}`, "mcptypes: tools/call: handler returned neither result nor error (-32603)"},
		{"tools/call", `{"name":"none"}`, "unknown tool: none (-32602)"},
		{"tools/call", `{}`, "invalid params at /name: required, but absent (-32602)"},
		{"prompts/list", "", "method not found: prompts/list (-32601)"},
		{"server/discover", "", "method not found: server/discover (-32601)"},
	} {
		var params any
		if tt.params != "" {
			params = json.RawMessage(tt.params)
		}
		var got json.RawMessage
		err := c.Call(t.Context(), tt.method, params, &got)
		if err != nil {
			got = json.RawMessage(err.Error())
		}
		must.Equal(t, tt.method+" "+tt.params, tt.want, string(got))
	}
}

// TestVersions checks which version is agreed on.
func TestVersions(t *testing.T) {
	for asked, want := range map[string]string{
		"2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2024-11-05": "2025-11-25", "2026-07-28": "2025-11-25",
	} {
		c := connect(t, toolserver.New("demo", "1"), "")
		must.Equal(t, asked, want, initialize(t, c, asked, "{}"))
	}
}

// TestAsk checks that only the client's clear answer approves.
func TestAsk(t *testing.T) {
	for _, tt := range []struct{ capabilities, result, want string }{
		{`{"elicitation":{}}`, `{"action":"accept"}`, "approved "},
		{`{"elicitation":{"form":{}}}`, `{"action":"accept"}`, "approved "},
		{`{"elicitation":{}}`, `{"action":"decline"}`, "denied declined"},
		{`{"elicitation":{}}`, `{"action":"perhaps"}`, "denied not_understood"},
		{`{"elicitation":{"url":{}}}`, `{"action":"accept"}`, "denied unsupported"},
		{`{}`, `{"action":"accept"}`, "denied unsupported"},
		{``, `{"action":"accept"}`, "denied unsupported"}, // without initialize
	} {
		c := connect(t, toolserver.New("demo", "1", tools...), tt.result)
		if tt.capabilities != "" {
			initialize(t, c, "2025-11-25", tt.capabilities)
		}
		r := must.Get(mcptypes.ToolsCall.Call(t.Context(), c, &mcptypes.CallToolRequestParams{Name: "ask"}))(t)
		must.Equal(t, tt.capabilities+" "+tt.result, tt.want, r.Content[0].(*mcptypes.TextContent).Text)
	}
}

// TestQuestions checks that the options of questions hold, before initialize too.
func TestQuestions(t *testing.T) {
	for capabilities, want := range map[string]string{
		`{"elicitation":{}}`: "denied cancelled", // by default it is abort
		`{}`:                 "abort unsupported",
		``:                   "abort unsupported", // without initialize
	} {
		s := toolserver.New("demo", "1", tools...)
		s.Questions = &elicit.Options{OnCancel: elicit.PolicyDeny, OnUnsupported: elicit.PolicyAbort}
		c := connect(t, s, `{"action":"cancel"}`)
		if capabilities != "" {
			initialize(t, c, "2025-11-25", capabilities)
		}
		r := must.Get(mcptypes.ToolsCall.Call(t.Context(), c, &mcptypes.CallToolRequestParams{Name: "ask"}))(t)
		must.Equal(t, capabilities, want, r.Content[0].(*mcptypes.TextContent).Text)
	}
}

// TestCancelledCall checks that a call which the client cancels withdraws its question, and that the next one is served.
func TestCancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, toolserver.New("demo", "1", tools...), "")
		initialize(t, c, "2025-11-25", `{"elicitation":{}}`)
		call := c.Start(t.Context(), "tools/call", json.RawMessage(`{"name":"ask"}`))
		synctest.Wait()
		call.Cancel()
		if err := call.Result(nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := <-c.withdrawn; !errors.Is(err, jsonrpc.ErrCancelled) {
			t.Errorf("the question ends with %v", err)
		}
		must.OK(t, c.Call(t.Context(), "ping", nil, nil))
	})
}

// TestSecondRun checks that one server serves one client.
func TestSecondRun(t *testing.T) {
	s := toolserver.New("demo", "1")
	c := connect(t, s, "")
	must.OK(t, c.Call(t.Context(), "ping", nil, nil))
	_, other := jsonrpc.Pipe()
	if err := s.Run(t.Context(), other); err == nil {
		t.Error("it serves a second client")
	}
}

// A tool that acts only if the user allows it. A program passes jsonrpc.Stdio() to Run.
func Example() {
	s := toolserver.New("deployer", "1.0", toolserver.Tool{
		Tool: mcptypes.Tool{Name: "deploy", Description: new("Deploys, if the user allows it.")},
		Call: func(ctx context.Context, s *toolserver.Server, _ json.RawMessage) (*mcptypes.CallToolResult, error) {
			if out := s.Ask(ctx, &elicit.Question{Message: "Deploy?"}); !out.Decision.Approves() {
				return nil, errors.New("not deployed: " + out.ForModel())
			}
			return &mcptypes.CallToolResult{Content: mcptypes.Text("deployed")}, nil
		},
	})
	ours, theirs := jsonrpc.Pipe()
	go func() { _ = s.Run(context.Background(), theirs) }()

	c := jsonrpc.NewPeer(ours, nil, nil)
	go func() { _ = c.Run(context.Background()) }()
	r, err := mcptypes.ToolsCall.Call(context.Background(), c, &mcptypes.CallToolRequestParams{Name: "deploy"})
	fmt.Println(r.Content[0].(*mcptypes.TextContent).Text, err)
	_ = c.Close()
	// Output: not deployed: this MCP client cannot show approval requests <nil>
}
