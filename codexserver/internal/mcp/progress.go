package mcp

import (
	"cmp"
	"time"

	"github.com/codexmcp/codexmcp/mcptypes"
)

// heartbeat is how often a silent call sends progress, so that idle timeouts of clients do
// not end it.
const heartbeat = 15 * time.Second

// progress counts the notifications/progress of a call (MCP 2025-06-18,
// basic/utilities/progress). The count goes on with the next request, because some clients use one
// token for all. The mutex of the outlet guards it.
type progress struct {
	sent  float64
	doing string
	quiet bool // only a heartbeat is sent: the answer may be a task, and clients drop progress that comes with an answer
	beat  *time.Timer
}

// begin begins the progress of a request, which has a heartbeat if beats is true.
func (p *progress) begin(doing string, quiet bool, beat func(), beats bool) {
	p.doing, p.quiet = doing, quiet
	if beats {
		p.beat = time.AfterFunc(heartbeat, beat)
	}
}

// end stops the heartbeat.
func (p *progress) end() {
	if p.beat != nil {
		p.beat.Stop()
	}
}

// next returns the notification of an activity, or nil if it is not sent. "" is a heartbeat.
func (p *progress) next(doing string) *mcptypes.ProgressNotificationParams {
	p.doing = cmp.Or(doing, p.doing)
	switch {
	case doing == "":
		p.beat.Reset(heartbeat)
	case p.quiet:
		return nil
	}
	p.sent++
	return &mcptypes.ProgressNotificationParams{Progress: p.sent, Message: new(p.doing)}
}
