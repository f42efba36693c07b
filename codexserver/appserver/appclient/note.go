package appclient

import (
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// notification handles one notification. It is called for one at a time.
func (c *Client) notification(r *jsonrpc.Request) {
	if !apptypes.UsesNote(r.Method) {
		if !apptypes.KnownNote(r.Method) {
			c.warnUnknown("notification", r.Method)
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

// warnUnknown reports a method that the schema does not have, once.
func (c *Client) warnUnknown(kind, method string) {
	if _, said := c.unknown.LoadOrStore(method, true); !said {
		c.log.Warn("codex: unknown "+kind+"; this codexmcp is older than Codex", "method", method, "version", c.Server().Version.String())
	}
}
