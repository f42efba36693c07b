package mcp

import (
	"cmp"
	"context"
	"sync"
	"time"

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
	send  func(*mcptypes.ProgressNotificationParams)
	stop  context.CancelFunc
	beat  sync.WaitGroup

	// The mutex of the outlet guards these.
	sent  float64
	doing string
}

// start begins the heartbeat, until end. It reports the last activity.
func (p *progress) start(ctx context.Context, report func(doing string)) {
	ctx, p.stop = context.WithCancel(ctx)
	p.beat.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				report("")
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

// report sends the activity, which is the last one if doing is "". The caller holds the outlet's mutex.
func (p *progress) report(doing string) {
	p.doing = cmp.Or(doing, p.doing)
	p.sent++
	now := p.doing
	params := &mcptypes.ProgressNotificationParams{ProgressToken: *p.token, Progress: p.sent, Message: &now}
	if p.mute {
		params.Message = nil
	}
	p.send(params)
}
