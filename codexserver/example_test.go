package codexserver_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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
