package codexserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// A server with an engine made of a function, and a client that calls it.
func Example() {
	echo := engine.TurnFunc(func(_ context.Context, host engine.Host, input []protocol.InputItem) error {
		host.Emit(protocol.AgentMessage{Message: "You said: " + protocol.TextOf(input)})
		return nil
	})
	ctx := context.Background()
	clientEnd, serverEnd := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() { served <- codexserver.New(echo, nil).Serve(ctx, serverEnd) }()

	client := jsonrpc.NewPeer(clientEnd, nil, nil)
	go client.Run(ctx)
	result, err := mcptypes.ToolsCall.Call(ctx, client, &mcptypes.CallToolRequestParams{
		Name: "codex", Arguments: json.RawMessage(`{"prompt": "hello"}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Content[0].(*mcptypes.TextContent).Text)

	client.Close()
	fmt.Println(<-served)
	// Output:
	// You said: hello
	// <nil>
}

// A function answers before a person is asked. If it does not decide, the client is asked,
// which is not possible here.
func ExampleRules() {
	rules := approval.Rules{
		Allow: []approval.Rule{{Command: []string{"go", "test"}}}, // in the sandbox
		Decide: func(_ context.Context, r *approval.Request) (elicit.Outcome, bool) {
			exec, ok := r.Event.(protocol.ExecApprovalRequest)
			if ok && slices.Contains(exec.Command, "sudo") {
				return elicit.Outcome{Decision: elicit.Denied, Feedback: "work without sudo"}, true
			}
			return elicit.Outcome{}, false
		},
	}
	asks := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		for _, argv := range [][]string{{"go", "test", "./..."}, {"sudo", "make"}, {"make"}} {
			out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "1", Command: argv, Cwd: "/work", Confinable: true})
			fmt.Printf("%s: %s %q\n", argv, out.Decision, out.ForModel())
		}
		return nil
	})
	ctx := context.Background()
	clientEnd, serverEnd := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() { served <- codexserver.New(asks, &codexserver.Options{Rules: rules}).Serve(ctx, serverEnd) }()

	client := jsonrpc.NewPeer(clientEnd, nil, nil)
	go client.Run(ctx)
	_, err := mcptypes.ToolsCall.Call(ctx, client, &mcptypes.CallToolRequestParams{
		Name: "codex", Arguments: json.RawMessage(`{"prompt": "build it"}`),
	})
	fmt.Println(err)
	client.Close()
	<-served
	// Output:
	// [go test ./...]: approved ""
	// [sudo make]: denied "declined: work without sudo"
	// [make]: denied "this MCP client cannot show approval requests"
	// <nil>
}
