package mcp

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// heartbeat is how often a silent call sends progress, so that idle timeouts of clients do
// not end it.
const heartbeat = 15 * time.Second

// progress sends notifications/progress for one request with a progress token (MCP 2025-06-18,
// basic/utilities/progress).
type progress struct {
	token *mcptypes.ProgressToken
	mute  bool // without messages, which came with 2025-03-26
	stuck func() string
	send  func(*mcptypes.ProgressNotificationParams)
	stop  context.CancelFunc
	beat  sync.WaitGroup

	// The mutex of the outlet guards these.
	sent  float64
	doing string
}

// start begins the heartbeat, until end. It reports what stuck returns, unless that is "", or else
// the last activity.
func (p *progress) start(ctx context.Context, report func(now, doing string)) {
	ctx, p.stop = context.WithCancel(ctx)
	p.beat.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				report(p.stuck(), "")
			case <-ctx.Done():
				return
			}
		}
	})
}

// end stops the heartbeat. The caller does not hold the outlet's mutex.
func (p *progress) end() {
	p.stop()
	p.beat.Wait()
}

// report sends now, or else the activity, which is the last one if doing is "". The caller holds the
// outlet's mutex.
func (p *progress) report(now, doing string) {
	p.doing = cmp.Or(doing, p.doing)
	now = cmp.Or(now, p.doing)
	p.sent++
	params := &mcptypes.ProgressNotificationParams{ProgressToken: *p.token, Progress: p.sent, Message: &now}
	if p.mute {
		params.Message = nil
	}
	p.send(params)
}

// stuck returns the words of a turn whose model is stuck, and "" otherwise. J is nil without a
// turn.
func stuck(j *mcptool.Job) string {
	if j == nil {
		return ""
	}
	return j.Stuck()
}
