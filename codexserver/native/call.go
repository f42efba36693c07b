package native

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// toolCall is a call of any kind.
type toolCall struct {
	id, name string
	// arguments is JSON text, or the free text of a custom call.
	arguments string
	custom    bool
	// shell is the action of a model with a shell of its own.
	shell *protocol.LocalShellAction
}

// callOf reads an item that is a call.
func callOf(item protocol.ResponseItem) (toolCall, bool) {
	switch item := item.(type) {
	case protocol.FunctionCallItem:
		return toolCall{id: item.CallID, name: item.Name, arguments: item.Arguments}, true
	case protocol.CustomToolCallItem:
		return toolCall{id: item.CallID, name: item.Name, arguments: item.Input, custom: true}, true
	case protocol.LocalShellCallItem:
		return toolCall{id: item.CallID, name: "local_shell", shell: &item.Action}, true
	}
	return toolCall{}, false
}

// answer is the item that answers the call.
func (c toolCall) answer(output string) protocol.ResponseItem {
	if c.custom {
		return protocol.CustomToolCallOutputItem{CallID: c.id, Output: output}
	}
	return protocol.FunctionCallOutputItem{CallID: c.id, Output: output}
}

// toolResult is what a tool has for the model.
type toolResult struct {
	output string
	// items follow the outputs of all the calls of a response.
	items []protocol.ResponseItem
}

// tools are what the model is offered.
func (t *turn) tools() []model.Tool {
	return []model.Tool{shellTool}
}

// call runs a tool. The error is the end of the turn; what the model did wrong
// is told to it in the result.
func (t *turn) call(ctx context.Context, call toolCall) (toolResult, error) {
	if ctx.Err() != nil {
		return toolResult{}, context.Cause(ctx)
	}
	switch {
	case call.shell != nil:
		return t.shellAction(ctx, call)
	case !call.custom && (call.name == "shell" || call.name == "container.exec"):
		return t.shellCall(ctx, call)
	}
	return toolResult{output: fmt.Sprintf("unsupported call: %s", call.name)}, nil
}
