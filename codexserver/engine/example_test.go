package engine_test

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// terminal is a host that prints events and approves everything.
type terminal struct{ engine.DenyAll }

func (terminal) Emit(m protocol.EventMsg) { fmt.Println(m.EventType()) }

func (terminal) EmitAs(_ string, m protocol.EventMsg) { fmt.Println(m.EventType()) }

func (terminal) Ask(context.Context, approval.Subject) elicit.Outcome {
	return elicit.Outcome{Decision: elicit.Approved}
}

// A function is an engine.
func ExampleTurnFunc() {
	echo := engine.TurnFunc(func(_ context.Context, host engine.Host, input []protocol.InputItem) error {
		host.Emit(protocol.AgentMessage{Message: protocol.TextOf(input)})
		return nil
	})
	ctx := context.Background()
	conversation, err := echo.Start(ctx, protocol.Config{}, terminal{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conversation.Close()
	if err := conversation.Turn(ctx, protocol.TurnInput{Items: protocol.TextInput("hello")}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// session_configured
	// task_started
	// agent_message
	// task_complete
}
