package gosdkmcp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/contrib/gosdkmcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pusher is an engine that asks whether it may push.
func pusher(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
	out := host.Ask(ctx, approval.Command{CallID: "1", Command: []string{"git", "push"}, Cwd: "/work"})
	host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
	return nil
}

// An agent on the official SDK hands over a task and answers a question.
func Example() {
	server := codexserver.New(engine.TurnFunc(pusher), nil)
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Println(r.Params.Message)
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	ctx := context.Background()
	session, err := client.Connect(ctx, &gosdkmcp.Transport{Server: server}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "codex", Arguments: map[string]any{"prompt": "publish it"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	fmt.Println(session.Close())
	// Output:
	// Allow Codex to run `git push` in `/work`?
	// approved
	// <nil>
}

func TestConnectNeedsAServer(t *testing.T) {
	if _, err := new(gosdkmcp.Transport).Connect(t.Context()); err == nil {
		t.Error("it connected without a server")
	}
}

// Close interrupts the session's turns and waits for them.
func TestCloseInterrupts(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	server := codexserver.New(engine.TurnFunc(func(ctx context.Context, _ engine.Host, _ []protocol.InputItem) error {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	}), nil)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).
		Connect(t.Context(), &gosdkmcp.Transport{Server: server}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "codex", Arguments: map[string]any{"prompt": "wait", "background": true}}); err != nil {
		t.Fatal(err)
	}
	<-began
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	select {
	case cause := <-ended:
		if cause == nil {
			t.Error("the turn was not interrupted")
		}
	default:
		t.Error("Close returned before the turn had ended")
	}
}
