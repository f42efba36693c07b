package model

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Call is a model's call of a tool, in whichever form its item has.
type Call struct {
	// ID is the call's id, which the model chose.
	ID string
	// Name is the tool's name.
	Name string
	// Arguments is a JSON text or, when Custom is true, free text.
	Arguments string
	Custom    bool
	// Shell is the action of a model with a built-in shell tool, or nil.
	Shell *protocol.LocalShellAction
}

// CallOf returns the call that an item is; ok is false for other items.
func CallOf(item protocol.ResponseItem) (call Call, ok bool) {
	switch item := item.(type) {
	case protocol.FunctionCallItem:
		return Call{ID: item.CallID, Name: item.Name, Arguments: item.Arguments}, true
	case protocol.CustomToolCallItem:
		return Call{ID: item.CallID, Name: item.Name, Arguments: item.Input, Custom: true}, true
	case protocol.LocalShellCallItem:
		return Call{ID: item.CallID, Name: item.ItemType(), Shell: &item.Action}, true
	}
	return Call{}, false
}

// Function returns the call as that of a function, which each provider can read.
func (c Call) Function() protocol.FunctionCallItem {
	var arguments any
	switch {
	case c.Shell != nil:
		c.Name, arguments = "shell", map[string][]string{"command": c.Shell.Command}
	case c.Custom:
		arguments = map[string]string{"input": c.Arguments}
	}
	if arguments != nil {
		text, _ := json.Marshal(arguments, jsontext.AllowInvalidUTF8(true)) // texts can be written
		c.Arguments = string(text)
	}
	return protocol.FunctionCallItem{Name: c.Name, Arguments: c.Arguments, CallID: c.ID}
}

// Answer returns the item that answers the call.
func (c Call) Answer(output string) protocol.ResponseItem {
	if c.Custom {
		return protocol.CustomToolCallOutputItem{CallID: c.ID, Output: output}
	}
	return protocol.FunctionCallOutputItem{CallID: c.ID, Output: output}
}

// AnswerOf returns the answer to a call that an item is; ok is false for other items.
func AnswerOf(item protocol.ResponseItem) (answer protocol.FunctionCallOutputItem, ok bool) {
	switch item := item.(type) {
	case protocol.FunctionCallOutputItem:
		return item, true
	case protocol.CustomToolCallOutputItem:
		return protocol.FunctionCallOutputItem(item), true
	}
	return answer, false
}

func isCall(item protocol.ResponseItem) bool {
	_, ok := CallOf(item)
	return ok
}

// named returns a call with another id. Other items stay as they are.
func named(item protocol.ResponseItem, id string) protocol.ResponseItem {
	switch item := item.(type) {
	case protocol.FunctionCallItem:
		item.CallID = id
		return item
	case protocol.CustomToolCallItem:
		item.CallID = id
		return item
	case protocol.LocalShellCallItem:
		item.CallID = id
		return item
	}
	return item
}

// Text returns the text of parts of a message.
func Text(parts []protocol.ContentItem) string {
	if len(parts) == 1 {
		return parts[0].Text
	}
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
	}
	return text.String()
}
