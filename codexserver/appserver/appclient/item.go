package appclient

import (
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/go-json-experiment/json"
)

// Text returns a text as the input of a turn.
func Text(text string) []apptypes.Input {
	return []apptypes.Input{{Type: apptypes.UserInputText, Text: &text}}
}

// itemTypes are the types of items that are read whole.
var itemTypes = []string{
	apptypes.ThreadItemAgentMessage, apptypes.ThreadItemReasoning, apptypes.ThreadItemCommandExecution, apptypes.ThreadItemFileChange,
	apptypes.ThreadItemMCPToolCall, apptypes.ThreadItemWebSearch, apptypes.ThreadItemImageView, apptypes.ThreadItemSubAgentActivity,
	apptypes.ThreadItemCollabAgentToolCall,
}

// ReadItem reads an item of a notification or a turn. It reads only type and id of an unknown type,
// whose other members may have another meaning.
func ReadItem(raw []byte) (apptypes.Item, error) {
	var it apptypes.Item
	err := json.Unmarshal(raw, &it)
	if err == nil && slices.Contains(itemTypes, it.Type) {
		return it, nil
	}
	var head struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	if json.Unmarshal(raw, &head) != nil || slices.Contains(itemTypes, head.Type) {
		return apptypes.Item{}, fmt.Errorf("item %s: %w", head.Type, err)
	}
	return apptypes.Item{Type: head.Type, ID: head.ID}, nil
}

// ErrorKind returns the kind of an error, one of apptypes.CodexErrorInfo… or "", and its HTTP status
// or 0.
func ErrorKind(e *apptypes.TurnError) (kind string, status int) {
	if json.Unmarshal(e.CodexErrorInfo, &kind) == nil { // it is a word, or an object with one member
		return kind, 0
	}
	var object map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	if json.Unmarshal(e.CodexErrorInfo, &object) == nil {
		for kind, o := range object { // there is one
			return kind, o.Status
		}
	}
	return "", 0
}
