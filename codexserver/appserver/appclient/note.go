package appclient

import (
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/jsonrpc"
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
			ID: end.Turn.ID, Status: apptypes.TurnStatusFailed, Error: &apptypes.TurnError{Message: "codex reported the end of the turn in an unknown form: " + err.Error()},
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
