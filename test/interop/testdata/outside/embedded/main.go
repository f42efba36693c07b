// Command embedded is the whole server with an engine of its own.
package main

import (
	"context"
	"log"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func main() {
	echo := engine.TurnFunc(func(_ context.Context, host engine.Host, input []protocol.InputItem) error {
		host.Emit(protocol.AgentMessage{Message: "You said: " + protocol.TextOf(input)})
		return nil
	})
	if err := codexserver.New(echo, nil).Serve(context.Background(), jsonrpc.Stdio()); err != nil {
		log.Fatal(err)
	}
}
