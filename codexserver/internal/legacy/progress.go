package legacy

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// heartbeat is how often a call that is silent shows that it lives, so that
// clients' idle clocks do not end it.
const heartbeat = 15 * time.Second

// progress sends notifications/progress for one call that brought a token (MCP
// 2025-06-18, basic/utilities/progress). A nil progress sends nothing.
type progress struct {
	session *Session
	token   mcptypes.ProgressToken

	mu   sync.Mutex
	sent float64
	now  string     // what is going on
	job  *tools.Job // nil before the turn is queued, and of tools without one

	stop    context.CancelFunc
	stopped chan struct{}
}

// newProgress returns the progress of a call, nil without a token. It is to be
// ended before the call is answered.
func (ss *Session) newProgress(ctx context.Context, meta *mcptypes.RequestMeta) *progress {
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

// end sends nothing any more once it has returned.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.stop()
	<-p.stopped
}

// event sends what an event says is going on.
func (p *progress) event(m protocol.EventMsg) {
	if p == nil {
		return
	}
	if words := tools.Activity(m); words != "" {
		p.say(words)
	}
}

// maxProgressMessage bounds the message of a notification, in runes.
const maxProgressMessage = 200

// begin notes the turn of the call.
func (p *progress) begin(j *tools.Job) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.job = j
}

// say sends what is going on; "" repeats it, or says that the model is stuck.
func (p *progress) say(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if message != "" {
		p.now = tools.Cut(message, maxProgressMessage)
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
