package appclient

import (
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/go-json-experiment/json"
)

// Text returns a text as the input of a turn.
func Text(text string) []apptypes.Input {
	return []apptypes.Input{{Type: apptypes.UserInputText, Text: &text}}
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
