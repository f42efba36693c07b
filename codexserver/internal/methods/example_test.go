package methods_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp"
	"github.com/codexmcp/codexmcp/codexserver/internal/methods"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// A session has the methods that were registered. The server's own are those of MCP.
func Example() {
	ctx := context.Background()
	e := &servertest.Engine{}
	table := tools.New(e, nil)
	wire := &mcp.Server{Tools: table}
	session := wire.NewSession(ctx, thread.NewTable(e, &approve.Options{}).Share(""), nil)
	client := session.Connect(session, true, func() {})
	defer client.Close()
	mux := client.Mux()
	(&methods.Server{Engine: e, Tools: table}).Register(mux, client)

	ours, theirs := jsonrpc.Pipe()
	server := client.Peer(ours, mux, jsonrpc.Hooks{}, methods.Inline()...)
	caller := jsonrpc.NewPeer(theirs, nil, nil)
	defer caller.Close()
	for _, p := range []*jsonrpc.Peer{server, caller} {
		go p.Run(ctx)
	}

	var id struct {
		ConversationID string `json:"conversationId"`
	}
	err := caller.Call(ctx, "newConversation", json.RawMessage(`{}`), &id)
	fmt.Println(id.ConversationID != "", err)
	// Output: true <nil>
}
