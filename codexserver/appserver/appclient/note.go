package appclient

import (
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json"
)

// notification handles one notification. It is called for one at a time.
func (c *Client) notification(r *jsonrpc.Request) {
	if !apptypes.UsesNote(r.Method) {
		if c.first(r.Method) {
			c.log.Debug("codex: notification not read", "method", r.Method)
		}
		return
	}
	var n apptypes.Note
	if err := r.Bind(&n); err != nil {
		c.log.Warn("codex: notification not understood", "method", r.Method, "error", err)
		var end struct { // of a turn, which must not wait for another
			ThreadID string `json:"threadId"`
			Turn     struct {
				ID string `json:"id"`
			} `json:"turn"`
		}
		if r.Method != apptypes.NoteTurnCompleted || r.Bind(&end) != nil {
			return
		}
		n = apptypes.Note{ThreadID: end.ThreadID, Turn: &apptypes.Turn{
			ID: end.Turn.ID, Status: apptypes.TurnStatusFailed,
			Error: &apptypes.TurnError{Message: "codex reported the end of the turn in an unknown form: " +
				err.Error()},
		}}
	}
	if c.options.Note != nil {
		c.options.Note(r.Method, &n)
	}
	c.follow(r.Method, &n)
}

// first reports whether a method comes for the first time.
func (c *Client) first(method string) bool {
	_, said := c.unread.LoadOrStore(method, true)
	return !said
}

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
