package interop

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// mcpgo is the client of mcp-go.
type mcpgo struct{}

func (mcpgo) release(t *testing.T) string { return moduleRelease(t, "github.com/mark3labs/mcp-go") }

func (mcpgo) cannot(string) string { return "" }

func (mcpgo) play(ctx context.Context, s script, enough <-chan struct{}) (r report, err error) {
	stdio := transport.NewStdioWithOptions(s.Command[0], nil, nil, transport.WithCommandFunc(
		func(context.Context, string, []string, []string) (*exec.Cmd, error) { return s.command(ctx), nil }))
	w := &witness{answer: s.Answer}
	defer func() { r = w.report(r) }()
	var options []mcpclient.ClientOption
	if s.Answer != "" {
		options = append(options, mcpclient.WithElicitationHandler(mcpgoElicit{w}))
	}
	client := mcpclient.NewClient(stdio, options...)
	client.OnNotification(func(n mcp.JSONRPCNotification) {
		if n.Method == "notifications/progress" {
			number, _ := n.Params.AdditionalFields["progress"].(float64)
			message, _ := n.Params.AdditionalFields["message"].(string)
			w.see(progress{number, message})
		}
	})
	if err := client.Start(ctx); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	hello := mcp.InitializeRequest{}
	hello.Params.ClientInfo = mcp.Implementation{Name: "interop-mcpgo", Version: "1"}
	met, err := client.Initialize(ctx, hello)
	if err != nil {
		return r, err
	}
	r.Server = met.ServerInfo.Name
	if s.List {
		list, err := client.ListTools(ctx, mcp.ListToolsRequest{})
		if err != nil {
			return r, err
		}
		for _, tool := range list.Tools {
			r.Tools = append(r.Tools, tool.Name)
		}
	}
	threadID := ""
	for _, c := range s.Calls {
		request := mcp.CallToolRequest{}
		request.Params.Name, request.Params.Arguments = c.Tool, c.arguments(threadID)
		if c.Progress {
			request.Params.Meta = &mcp.Meta{ProgressToken: "progress of the call"}
		}
		callCtx, done := c.until(ctx, enough)
		answer, err := client.CallTool(callCtx, request)
		done()
		if err != nil {
			r.Results = append(r.Results, result{Failed: err.Error()})
			continue
		}
		content, _ := answer.StructuredContent.(map[string]any)
		threadID, _ = content["threadId"].(string)
		got := result{IsError: answer.IsError, ThreadID: threadID}
		for _, block := range answer.Content {
			if text, ok := mcp.AsTextContent(block); ok {
				got.Text = append(got.Text, text.Text)
			}
		}
		r.Results = append(r.Results, got)
	}
	return r, nil
}

// mcpgoElicit is mcp-go's handler of questions.
type mcpgoElicit struct{ *witness }

func (e mcpgoElicit) Elicit(_ context.Context, q mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	action, err := e.elicit(q.Params.Message)
	if err != nil {
		return nil, err
	}
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseAction(action)}}, nil
}
