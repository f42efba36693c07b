package interop

import (
	"context"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// gosdk is the client of the official Go SDK.
type gosdk struct{}

func (gosdk) release(t *testing.T) string {
	return moduleRelease(t, "github.com/modelcontextprotocol/go-sdk")
}

func (gosdk) cannot(string) string { return "" }

func (gosdk) play(ctx context.Context, s script, enough <-chan struct{}) (r report, err error) {
	w := &witness{answer: s.Answer}
	defer func() { r = w.report(r) }()
	options := &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, p *mcp.ProgressNotificationClientRequest) {
			w.see(progress{p.Params.Progress, p.Params.Message})
		},
	}
	if s.Answer != "" {
		options.ElicitationHandler = func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			action, err := w.elicit(q.Params.Message)
			return &mcp.ElicitResult{Action: action}, err
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "interop-gosdk", Version: "1"}, options)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: s.command(ctx)}, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	r.Server = session.InitializeResult().ServerInfo.Name
	if s.List {
		for tool, err := range session.Tools(ctx, nil) {
			if err != nil {
				return r, err
			}
			r.Tools = append(r.Tools, tool.Name)
		}
	}
	threadID := ""
	for _, c := range s.Calls {
		params := &mcp.CallToolParams{Name: c.Tool, Arguments: c.arguments(threadID)}
		if c.Progress {
			params.SetProgressToken("progress of the call")
		}
		callCtx, done := c.until(ctx, enough)
		answer, err := session.CallTool(callCtx, params)
		done()
		if err != nil {
			r.Results = append(r.Results, result{Failed: err.Error()})
			continue
		}
		content, _ := answer.StructuredContent.(map[string]any)
		threadID, _ = content["threadId"].(string)
		got := result{IsError: answer.IsError, ThreadID: threadID}
		for _, block := range answer.Content {
			if text, ok := block.(*mcp.TextContent); ok {
				got.Text = append(got.Text, text.Text)
			}
		}
		r.Results = append(r.Results, got)
	}
	return r, nil
}
