package modern_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// TestPeer calls a method over a jsonrpc.Peer: with a union as the result, and with params
// that lack their metadata.
func TestPeer(t *testing.T) {
	mux := &jsonrpc.Mux{}
	modern.ToolsCall.Handle(mux, func(context.Context, *modern.CallToolRequestParams) (modern.AnyCallToolResult, error) {
		return &modern.CreateTaskResult{TaskID: "t", Status: modern.TaskStatusWorking}, nil
	})
	a, b := jsonrpc.Pipe()
	server, client := jsonrpc.NewPeer(a, mux, nil), jsonrpc.NewPeer(b, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, p := range []*jsonrpc.Peer{server, client} {
		running.Go(func() { _ = p.Run(ctx) })
	}
	defer running.Wait()
	defer cancel()

	result, err := modern.ToolsCall.Call(ctx, client, &modern.CallToolRequestParams{Name: "codex"})
	if task, ok := result.(*modern.CreateTaskResult); err != nil || !ok || task.TaskID != "t" {
		t.Errorf("got %+v, %v", result, err)
	}
	err = client.Call(ctx, "tools/call", map[string]string{"name": "codex"}, nil)
	var wrong *jsonrpc.Error
	if !errors.As(err, &wrong) || wrong.Code != modern.CodeInvalidParams {
		t.Errorf("got %v", err)
	}
}
