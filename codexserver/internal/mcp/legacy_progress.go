package mcp

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// progress sends notifications/progress for one call with a progress token (MCP 2025-06-18,
// basic/utilities/progress). A nil progress does nothing.
type progress struct {
	session *LegacySession
	token   mcptypes.ProgressToken

	mu   sync.Mutex
	sent float64
	now  string       // the current activity
	job  *mcptool.Job // nil before the turn is queued, and for tools without one

	stop    context.CancelFunc
	stopped chan struct{}
}

// newProgress returns the progress of a call, or nil without a token. The caller must call
// end before it answers the call.
func (ss *LegacySession) newProgress(ctx context.Context, meta *mcptypes.RequestMeta) *progress {
	if meta == nil || meta.ProgressToken == nil {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	p := &progress{session: ss, token: *meta.ProgressToken, now: "starting", stop: stop, stopped: make(chan struct{})}
	go p.beat(ctx)
	return p
}

func (p *progress) beat(ctx context.Context) {
	defer close(p.stopped)
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.say("")
		case <-ctx.Done():
			return
		}
	}
}

// end stops the progress. No notification is sent after it returns.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.stop()
	<-p.stopped
}

// event sends the activity that an event reports, if any.
func (p *progress) event(m protocol.EventMsg) {
	if p == nil {
		return
	}
	if words := mcptool.Activity(m); words != "" {
		p.say(words)
	}
}

// begin records the turn of the call.
func (p *progress) begin(j *mcptool.Job) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.job = j
}

// say sends an activity. "" repeats the last one, or reports that the model is stuck.
func (p *progress) say(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if message != "" {
		p.now = message
	}
	now := p.now
	if message == "" && p.job != nil {
		now = cmp.Or(p.job.Stuck(), now)
	}
	p.sent++
	params := &mcptypes.ProgressNotificationParams{ProgressToken: p.token, Progress: p.sent}
	if p.session.speaks("2025-03-26") { // the first version with messages
		params.Message = &now
	}
	p.session.notify(mcptypes.NotificationsProgress.Name(), params)
}
