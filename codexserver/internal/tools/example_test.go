package tools_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// A connection passes a call of a tool with the threads that its client holds. What is wrong
// with the call is in its result.
func Example() {
	ctx := context.Background()
	e := engine.TurnFunc(func(_ context.Context, host engine.Host, in []protocol.InputItem) error {
		host.Emit(protocol.AgentMessage{Message: "You said: " + protocol.TextOf(in)})
		return nil
	})
	share := thread.NewTable(e, &approve.Options{}).Share("")
	defer share.Close()
	table := tools.New(e, nil)
	c := &tools.Call{Threads: share, Turns: tools.NewTurns(ctx), Folder: func(context.Context) string { return "/work" }}
	for _, arguments := range []string{`{"prompt":"hello"}`, `{"prompt":"hello","sandbox":"none"}`} {
		r := table.Call(ctx, c, "codex", json.RawMessage(arguments))
		fmt.Println(r.Content[0].(*mcptypes.TextContent).Text)
	}
	// Output:
	// You said: hello
	// codex: argument /sandbox: value must be one of "read-only", "workspace-write", "danger-full-access"
}
