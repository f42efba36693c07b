package main

import (
	"context"
	"errors"
	"time"

	"github.com/codexmcp/codexmcp/contrib/gosdk"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// arguments are those of all tools.
type arguments struct {
	Name     string  `json:"name,omitempty"`
	Seconds  float64 `json:"seconds,omitempty"`
	Label    string  `json:"label,omitempty"`
	Filename string  `json:"filename,omitempty"`
}

type handler = mcp.ToolHandlerFor[arguments, any]

func newServer(tasks *gosdk.Tasks) (*mcp.Server, error) {
	s := mcp.NewServer(&mcp.Implementation{Name: "taskserver", Version: "1"}, nil)
	if err := tasks.Install(s); err != nil {
		return nil, err
	}
	// always makes a tool that is a task whenever it is called.
	always := func(work gosdk.Work) handler {
		return func(ctx context.Context, req *mcp.CallToolRequest, _ arguments) (*mcp.CallToolResult, any, error) {
			r, err := tasks.Start(ctx, req, work)
			return r, nil, err
		}
	}
	for name, h := range map[string]handler{
		"greet": func(_ context.Context, _ *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, any, error) {
			return text("Hello, " + in.Name + "!"), nil, nil
		},
		"slow_compute": func(ctx context.Context, req *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, any,
			error) {
			work := func(ctx context.Context, _ *gosdk.Task) (*mcp.CallToolResult, error) {
				return text("computed " + in.Label), sleep(ctx, time.Duration(in.Seconds*float64(time.Second)))
			}
			if !gosdk.Declares(req) {
				r, err := work(ctx, nil)
				return r, nil, err
			}
			r, err := tasks.Start(ctx, req, work)
			return r, nil, err
		},
		"failing_job": always(func(ctx context.Context, _ *gosdk.Task) (*mcp.CallToolResult, error) {
			if err := sleep(ctx, time.Second); err != nil {
				return nil, err
			}
			return nil, errors.New("it failed, as it should")
		}),
		"protocol_error_job": always(func(context.Context, *gosdk.Task) (*mcp.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "it crashed, as it should"}
		}),
		"confirm_delete": always(confirm),
		"multi_input":    always(askBoth),
		"test_tool_with_task": func(ctx context.Context, req *mcp.CallToolRequest, _ arguments) (*mcp.CallToolResult,
			any, error) {
			const key = "user_name"
			answer, ok := req.Params.InputResponses[key].(*mcp.ElicitResult)
			if !ok {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{key: form("What is your name?", "name")}},
					nil, nil
			}
			name, _ := answer.Content["name"].(string)
			r, err := tasks.Start(ctx, req, func(context.Context, *gosdk.Task) (*mcp.CallToolResult, error) {
				return text("Hello, " + name + "!"), nil
			})
			return r, nil, err
		},
	} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "tests " + name}, h)
	}
	return s, nil
}

// confirm asks before it does something.
func confirm(ctx context.Context, t *gosdk.Task) (*mcp.CallToolResult, error) {
	t.Say("waiting for a person")
	answer, err := t.Elicit(ctx, &mcp.ElicitParams{Message: "Delete it?",
		RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}})
	switch {
	case err != nil:
		return nil, err
	case answer.Action != "accept":
		return text("not deleted: " + answer.Action), nil
	}
	return text("deleted"), nil
}

// askBoth asks two questions at the same time.
func askBoth(ctx context.Context, t *gosdk.Task) (*mcp.CallToolResult, error) {
	type answer struct {
		result *mcp.ElicitResult
		err    error
	}
	answers := make(chan answer, 2)
	for _, q := range []*mcp.ElicitParams{form("What is your name?", "name"),
		form("What is your favorite color?", "color")} {
		go func() {
			r, err := t.Elicit(ctx, q)
			answers <- answer{r, err}
		}()
	}
	for range 2 {
		if a := <-answers; a.err != nil {
			return nil, a.err
		}
	}
	return text("both are answered"), nil
}

func form(message, field string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{field: map[string]any{"type": "string"}},
	}}
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
