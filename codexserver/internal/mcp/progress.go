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
// basic/utilities/progress). A nil progress does nothing.
type progress struct {
	token *mcptypes.ProgressToken
	mute  bool // without messages, which came with 2025-03-26
	stuck func() string
	send  func(*mcptypes.ProgressNotificationParams)
	stop  context.CancelFunc
	beat  sync.WaitGroup

	mu    sync.Mutex
	ended bool
	sent  float64
	doing string
}

// start begins the heartbeat, until end. A heartbeat sends what stuck returns, unless that is
// "", or else the last activity.
func (p *progress) start(ctx context.Context) {
	ctx, p.stop = context.WithCancel(ctx)
	p.beat.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.report(p.stuck(), "")
			case <-ctx.Done():
				return
			}
		}
	})
}

// end stops the progress, and returns the last one. No notification is sent after it returns.
func (p *progress) end() (sent float64) {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	p.ended, sent = true, p.sent
	p.mu.Unlock()
	p.stop()
	p.beat.Wait()
	return sent
}

// say sends an activity.
func (p *progress) say(words string) {
	if p != nil {
		p.report("", words)
	}
}

// report sends now, or else the activity, which is the last one if doing is "".
func (p *progress) report(now, doing string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
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
