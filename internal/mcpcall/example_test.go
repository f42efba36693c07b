package mcpcall_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// deployer is an MCP server of 2026-07-28 whose tool asks before it becomes a task.
func deployer() *jsonrpc.Mux {
	m := new(jsonrpc.Mux)
	modern.ServerDiscover.Handle(m, func(context.Context, *modern.RequestParams) (*modern.DiscoverResult, error) {
		return &modern.DiscoverResult{SupportedVersions: []string{modern.ProtocolVersion}, CacheScope: modern.CacheScopePrivate}, nil
	})
	modern.ToolsCall.Handle(m, func(_ context.Context, p *modern.CallToolRequestParams) (modern.AnyCallToolResult, error) {
		answer, ok := p.InputResponses["sure"].(*modern.ElicitResult)
		switch {
		case !ok:
			return &modern.InputRequiredResult{InputRequests: modern.InputRequests{"sure": &modern.ElicitRequest{
				Params: &modern.ElicitRequestFormParams{Message: "Deploy?"},
			}}}, nil
		case answer.Action != modern.ElicitResultActionAccept:
			return &modern.CallToolResult{Content: modern.Text("not deployed")}, nil
		}
		return &modern.CreateTaskResult{TaskID: "t1", Status: modern.TaskStatusWorking, PollIntervalMs: new(int64(100))}, nil
	})
	modern.TasksGet.Handle(m, func(_ context.Context, p *modern.GetTaskRequestParams) (*modern.GetTaskResult, error) {
		task := modern.Task{TaskID: p.TaskID, CreatedAt: "2026-11-20T10:00:00Z", LastUpdatedAt: "2026-11-20T10:00:05Z", PollIntervalMs: new(int64(100))}
		return &modern.GetTaskResult{Task: task.Completed(json.RawMessage(`{"content":[{"type":"text","text":"deployed"}]}`))}, nil
	})
	return m
}

func Example() {
	ctx := context.Background()
	ours, theirs := jsonrpc.Pipe()
	server := jsonrpc.NewPeer(theirs, deployer(), nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	s, err := mcpcall.Connect(ctx, ours, &mcpcall.Options{Ask: func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
		fmt.Println(string(params))
		return json.RawMessage(`{"action":"accept","content":{}}`), nil
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := s.Call(ctx, &mcpcall.Call{Tool: "deploy", Tasks: true, Started: func(id string) { fmt.Println("task", id) }})
	fmt.Println(string(result), err)
	_, _ = s.Close(), <-ended
	// Output:
	// {"message":"Deploy?","requestedSchema":{"type":"object","properties":{}}}
	// task t1
	// {"content":[{"type":"text","text":"deployed"}]} <nil>
}
