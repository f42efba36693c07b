package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// outlet reports a turn to the request that waits for it: events, progress and log messages. While no
// request does, it reports nothing. It is a [thread.Observer].
type outlet struct {
	client   *Client
	endsOnce bool   // a turn that failed ends with its error event, as in September 2025
	overflow func() // called when too many bytes wait for the client; nil does nothing
	failed   bool   // the turn's error event was sent

	mu       sync.Mutex
	to       *recipient // nil while no request waits
	progress progress
	gap      gap
}

// recipient is a request as the messages about its turn reach it.
type recipient struct {
	peer    *jsonrpc.Peer
	request jsonrpc.ID
	events  bool                          // the client receives codex/event
	paced   bool                          // the turn waits for the client
	level   func() *mcptypes.LoggingLevel // of the log messages that the client wants; nil wants none
	token   *mcptypes.ProgressToken       // nil for a request without progress
	mute    bool                          // progress has no messages, which came with 2025-03-26
}

// attach makes a request the one that waits. The caller must detach it before its answer. Doing is
// the first activity. With quiet only a heartbeat is sent as progress.
func (o *outlet) attach(to *recipient, doing string, quiet bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to, o.gap = to, gap{}
	o.progress.begin(doing, quiet, func() { o.report("") }, to.token != nil)
}

// detach ends the notifications. None is sent after it returns.
func (o *outlet) detach() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = nil
	o.progress.end()
}

// attached returns the request that waits, or nil.
func (o *outlet) attached() *recipient {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to
}

// report sends an activity as progress. "" is the last one, as a heartbeat.
func (o *outlet) report(doing string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to == nil || o.to.token == nil {
		return
	}
	if p := o.progress.next(doing); p != nil {
		p.ProgressToken = *o.to.token
		if o.to.mute {
			p.Message = nil
		}
		o.client.notify(o.to.peer, mcptypes.NotificationsProgress.Name(), p)
	}
}

// speak makes the outlet send all progress from now on.
func (o *outlet) speak() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.progress.quiet = false
}

// Ready implements [thread.Waiter].
func (o *outlet) Ready(ctx context.Context, _ protocol.EventMsg) {
	if to := o.attached(); to != nil && to.paced {
		o.client.pace.wait(ctx, to.peer, o.client.server.MaxUnread)
	}
}

// Event implements [thread.Observer].
func (o *outlet) Event(e thread.Event) {
	if o.ended(e.Msg) {
		return
	}
	if m, ok := e.Msg.(protocol.BackgroundEvent); ok && e.Notice {
		o.warn(m.Message)
	}
	if e.Sent() {
		o.send(e.Thread.ID, e.Event)
	}
	if e.Step.Doing != "" {
		o.report(e.Step.Doing)
	}
}

// ended reports whether the turn ended with an earlier event.
func (o *outlet) ended(m protocol.EventMsg) bool {
	if !o.endsOnce {
		return false
	}
	switch m.(type) {
	case protocol.Error:
		o.failed = true
	case protocol.TaskComplete:
		return o.failed
	}
	return false
}

// send sends an event.
func (o *outlet) send(thread string, e protocol.Event) {
	if m, ok := e.Msg.(protocol.SessionConfigured); ok {
		m.InitialMessages = nil // a caller of a tool does not need the history
		e.Msg = m
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	to := o.to
	if to == nil || !to.events {
		return
	}
	o.gap.send(to.peer, o.client.server.MaxUnread, e, func(e protocol.Event) {
		params, err := eventParams(to.request, thread, e)
		o.client.sendEvent(to.peer, eventMethod, params, err, o.overflow)
	})
}

// eventMethod is the notification that sends the events of a turn to the caller of a tool.
const eventMethod = "codex/event"

// eventParams returns the params of [eventMethod]. The request is the zero ID for an event that no call waits for.
// The thread is "" before it has begun.
func eventParams(request jsonrpc.ID, thread string, e protocol.Event) (json.RawMessage, error) {
	b := append(make([]byte, 0, 256), '{') // room for a delta
	if request != (jsonrpc.ID{}) {
		b = append(append(b, `"_meta":{"requestId":`...), request.String()...)
		if thread != "" {
			b, _ = jsontext.AppendQuote(append(b, `,"threadId":`...), thread)
		}
		b = append(b, `},`...)
	}
	b, _ = jsontext.AppendQuote(append(b, `"id":`...), e.ID) // an error reports invalid UTF-8
	b, err := protocol.AppendEvent(append(b, `,"msg":`...), e.Msg)
	return append(b, '}'), err
}

// sendEvent sends an event, unless it could not be written. It calls overflow, unless that is
// nil, if too many bytes wait for the client.
func (c *Client) sendEvent(peer *jsonrpc.Peer, method string, params any, err error, overflow func()) {
	if err != nil {
		c.Log().Error("event not sent", "error", err)
		return
	}
	err = peer.Notify(context.Background(), method, params)
	switch {
	case errors.Is(err, jsonrpc.ErrFull) && overflow != nil:
		c.Log().Error("the client does not read: the session ends", "waiting", c.server.MaxUnread.End())
		overflow()
	case err != nil:
		c.Log().Debug("event not sent", "method", method, "error", err)
	}
}

// notify queues a notification. It drops it if the connection is closed or too many bytes
// are waiting.
func (c *Client) notify(peer *jsonrpc.Peer, method string, params any) {
	if err := peer.Notify(context.Background(), method, params); err != nil {
		c.Log().Debug("notification not sent", "method", method, "error", err)
	}
}

// Asked implements [thread.Observer]. It does nothing: a place asks the client.
func (*outlet) Asked(*approval.Request) {}

// Waits implements [thread.Waited].
func (o *outlet) Waits(*approval.Request) { o.report("waiting for approval") }

// Decided implements [thread.Observer].
func (o *outlet) Decided(_ *approval.Request, d approval.Decision) {
	if d.Level >= slog.LevelWarn {
		o.warn(d.Detail)
	}
}

// warn sends a log message of the level warning, if the client wants those.
func (o *outlet) warn(words string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to == nil {
		return
	}
	wants := []mcptypes.LoggingLevel{mcptypes.LoggingLevelDebug, mcptypes.LoggingLevelInfo, mcptypes.LoggingLevelNotice, mcptypes.LoggingLevelWarning}
	if least := o.to.level(); least == nil || !slices.Contains(wants, *least) {
		return
	}
	o.client.notify(o.to.peer, mcptypes.NotificationsMessage.Name(), &mcptypes.LoggingMessageNotificationParams{
		Level: mcptypes.LoggingLevelWarning, Logger: new("codex"), Data: quote(elicit.OneLine(words, 0)),
	})
}
