package mcp

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json"
)

// heartbeat is how often a silent request sends progress, so that idle timeouts of clients
// do not end it.
const heartbeat = 15 * time.Second

// outlet sends the notifications of an open request: progress if it has a token, events if
// it declares them, and log messages of its level and above. A nil outlet sends nothing.
type outlet struct {
	session *ModernSession
	request *request
	beat    sync.WaitGroup
	stop    context.CancelFunc

	mu     sync.Mutex
	closed bool
	sent   float64
	doing  string
	gap    Gap
}

// newOutlet returns the outlet of a request. Its progress continues from sent. The caller
// must close it before the answer. A heartbeat sends what stuck returns, unless that is "",
// or else the last activity.
func (s *ModernSession) newOutlet(q *request, doing string, sent float64, stuck func() string) *outlet {
	ctx, stop := context.WithCancel(q.ctx)
	o := &outlet{session: s, request: q, stop: stop, doing: doing, sent: sent}
	if q.token() != nil {
		o.beat.Go(func() {
			tick := time.NewTicker(heartbeat)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					o.alive(stuck())
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return o
}

// close closes the outlet and returns its last progress. No notification is sent after it
// returns.
func (o *outlet) close() (sent float64) {
	o.mu.Lock()
	o.closed = true
	sent = o.sent
	o.mu.Unlock()
	o.stop()
	o.beat.Wait()
	return sent
}

// notify sends a notification. The caller holds o.mu.
func (o *outlet) notify(method string, params any) {
	if o.closed {
		return
	}
	if err := o.request.rpc.Peer().Notify(context.Background(), method, params); err != nil {
		o.session.server.Logger.Debug("notification not sent", "method", method, "error", err)
	}
}

// event sends an event, and the activity that it reports.
func (o *outlet) event(thread string, e protocol.Event) {
	if o == nil {
		return
	}
	if o.request.events {
		if m, ok := e.Msg.(protocol.SessionConfigured); ok {
			m.InitialMessages = nil // a caller of a tool does not need the history
			e.Msg = m
		}
		o.mu.Lock()
		o.gap.Send(o.request.rpc.Peer(), o.session.server.MaxUnread, e, func(e protocol.Event) {
			params, err := mcptool.EventParams(o.request.rpc.ID, thread, e)
			if err != nil {
				o.session.server.Logger.Error("event not sent", "error", err)
				return
			}
			o.notify(mcptool.EventMethod, params)
		})
		o.mu.Unlock()
	}
	if words := mcptool.Activity(e.Msg); words != "" {
		o.progress(words)
	}
}

// progress sends an activity.
func (o *outlet) progress(words string) {
	if o == nil || o.request.token() == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doing = words
	o.send(o.doing)
}

// alive repeats the last activity, or reports that the model is stuck.
func (o *outlet) alive(stuck string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.send(cmp.Or(stuck, o.doing))
}

// send sends a notification of progress. The caller holds o.mu.
func (o *outlet) send(words string) {
	o.sent++
	o.notify(modern.NotificationsProgress.Name(), &modern.ProgressNotificationParams{
		ProgressToken: *o.request.token(), Progress: o.sent, Message: &words,
	})
}

// warn sends a log message of the level warning, if the request wants those.
func (o *outlet) warn(words string) {
	if o == nil || o.request.meta.LogLevel == nil || !mcptool.Logs(*o.request.meta.LogLevel, mcptypes.LoggingLevelWarning) {
		return
	}
	data, err := json.Marshal(elicit.OneLine(words, 0))
	if err != nil {
		return // does not happen: it is valid UTF-8
	}
	logger := "codex"
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notify(modern.NotificationsMessage.Name(), &modern.LoggingMessageNotificationParams{
		Level: mcptypes.LoggingLevelWarning, Logger: &logger, Data: data,
	})
}

// ready waits until the client has room for another event, or ctx ends.
func (o *outlet) ready(ctx context.Context) {
	if o != nil && o.request.events {
		o.session.pace.Wait(ctx, o.request.rpc.Peer(), o.session.server.MaxUnread)
	}
}
