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
	client := wire.NewClient(ctx, thread.NewTable(e, &approve.Options{}).Share(""), nil)
	defer client.Close()
	session := mcp.NewLegacySession(client, true, func() {})
	defer session.Close()
	mux := session.Handler()
	(&methods.Server{Engine: e, Tools: table}).Register(mux, session)

	ours, theirs := jsonrpc.Pipe()
	server := jsonrpc.NewPeer(ours, mux, &jsonrpc.Options{Inline: methods.Inline()})
	session.Connect(server)
	caller := jsonrpc.NewPeer(theirs, nil, nil)
	defer caller.Close()
	server.Begin(ctx, func(error) {})
	caller.Begin(ctx, func(error) {})

	var id struct {
		ConversationID string `json:"conversationId"`
	}
	err := caller.Call(ctx, "newConversation", json.RawMessage(`{}`), &id)
	fmt.Println(id.ConversationID != "", err)
	// Output: true <nil>
}
