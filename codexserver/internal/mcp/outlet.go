package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// heartbeat is how often a silent call sends progress, so that idle timeouts of clients do
// not end it.
const heartbeat = 15 * time.Second

// apart is how long before an answer the last progress is sent, so that a client does not read both at once: the TypeScript
// SDK forgets the token with the answer, and looks at progress only then.
const apart = 30 * time.Millisecond

// outlet reports a turn to the request that waits for it: events, progress and log messages. While no
// request does, it reports nothing. It is a [thread.Observer].
type outlet struct {
	session  *Session
	overflow func() // called when too many bytes wait for the client; nil does nothing

	// The mutex of the session's calls guards the rest.

	to *recipient // nil while no request waits
	// failed are the threads whose turn's error event was sent, which is its last one, as in September 2025; nil for none.
	failed map[string]bool
	gap    gap
	// sent counts notifications/progress. It goes on with the next request, because some clients use one token for all.
	sent  float64
	last  time.Time  // when the last one was sent to the request
	doing string     // before the turn begins
	turn  *turn.Turn // nil before
	// quiet has only a heartbeat sent: the answer may be a task, and clients drop progress that comes with an answer.
	quiet bool
	beat  *time.Timer
}

// recipient is a request as the messages about its turn reach it.
type recipient struct {
	peer    *jsonrpc.Peer
	request jsonrpc.ID
	events  bool                          // the client receives codex/event
	level   func() *mcptypes.LoggingLevel // of the log messages that the client wants; nil wants none
	token   *mcptypes.ProgressToken       // nil for a request without progress
	mute    bool                          // progress has no messages, which came with 2025-03-26
}

// attach makes a request the one that waits. The caller must detach it before its answer. Doing is
// the first activity. With quiet only a heartbeat is sent as progress.
func (o *outlet) attach(to *recipient, doing string, quiet bool) {
	o.session.calls.mu.Lock()
	defer o.session.calls.mu.Unlock()
	o.to, o.gap, o.last = to, gap{}, time.Time{}
	o.doing, o.quiet = doing, quiet
	if to.token != nil {
		o.beat = time.AfterFunc(heartbeat, o.progress)
	}
}

// detach ends the notifications. None is sent after it returns, and the last progress has been sent for a moment, unless
// the request has ended.
func (o *outlet) detach(ctx context.Context) {
	o.session.calls.mu.Lock()
	o.to = nil
	if o.beat != nil {
		o.beat.Stop()
	}
	rest := apart - time.Since(o.last)
	o.session.calls.mu.Unlock()
	if rest <= 0 {
		return
	}
	select {
	case <-time.After(rest):
	case <-ctx.Done():
	case <-o.session.ctx.Done():
	}
}

// progress sends what happens now, as a heartbeat.
func (o *outlet) progress() {
	o.session.calls.mu.Lock()
	defer o.session.calls.mu.Unlock()
	if o.to != nil {
		o.tell()
	}
}

// tell sends what happens now as progress. The caller holds the mutex.
func (o *outlet) tell() {
	o.beat.Reset(heartbeat)
	o.sent++
	o.last = time.Now()
	p := &mcptypes.ProgressNotificationParams{ProgressToken: *o.to.token, Progress: o.sent}
	if !o.to.mute {
		p.Message = new(o.doing)
		if o.turn != nil {
			p.Message = new(o.turn.State().Line())
		}
	}
	o.session.notify(o.to.peer, mcptypes.NotificationsProgress.Name(), p, nil)
}

// Ready implements [thread.Observer].
func (o *outlet) Ready(ctx context.Context) {
	o.session.calls.mu.Lock()
	to := o.to
	o.session.calls.mu.Unlock()
	if to != nil {
		o.session.pace.wait(ctx, to.peer, o.session.server.MaxUnread)
	}
}

// Event implements [thread.Observer].
func (o *outlet) Event(e thread.Event) {
	o.session.calls.mu.Lock()
	defer o.session.calls.mu.Unlock()
	if o.ended(e.Thread.ID, e.Msg) {
		return
	}
	o.turn = cmp.Or(e.Turn, o.turn)
	if o.to == nil {
		return
	}
	if e.Notice != "" {
		o.warn(e.Notice)
	}
	if e.Sent() && o.to.events {
		o.send(e.Thread.ID, e.Event)
	}
	if e.Turn != nil && o.to.token != nil && !o.quiet { // it does something else
		o.tell()
	}
}

// ended reports whether the turn of a thread ended with an earlier event. The caller holds the mutex.
func (o *outlet) ended(thread string, m protocol.EventMsg) bool {
	switch m.(type) {
	case protocol.Error:
		if o.failed == nil {
			o.failed = map[string]bool{}
		}
		o.failed[thread] = true
	case protocol.TaskComplete:
		return o.failed[thread]
	}
	return false
}

// send sends an event. The caller holds the mutex.
func (o *outlet) send(thread string, e protocol.Event) {
	if m, ok := e.Msg.(protocol.SessionConfigured); ok {
		m.InitialMessages = nil // a caller of a tool does not need the history
		e.Msg = m
	}
	to := o.to
	o.gap.send(to.peer, o.session.server.MaxUnread, e, func(e protocol.Event) {
		b := append(make([]byte, 0, 256), `{"_meta":{"requestId":`...) // room for a delta
		b = append(b, to.request.String()...)
		if thread != "" { // it has begun
			b, _ = jsontext.AppendQuote(append(b, `,"threadId":`...), thread)
		}
		o.session.sendEvent(to.peer, "codex/event", append(b, `},`...), e, o.overflow)
	})
}

// sendEvent sends an event, see notify. Begin is the beginning of its params.
func (s *Session) sendEvent(peer *jsonrpc.Peer, method string, begin []byte, e protocol.Event, overflow func()) {
	b, _ := jsontext.AppendQuote(append(begin, `"id":`...), e.ID) // an error reports invalid UTF-8
	b, err := protocol.AppendEvent(append(b, `,"msg":`...), e.Msg)
	if err != nil {
		s.Log().Error("event not sent", "error", err)
		return
	}
	s.notify(peer, method, json.RawMessage(append(b, '}')), overflow)
}

// notify queues a notification. It drops it if the connection is closed or too many bytes are waiting. In that
// case it calls overflow, unless that is nil.
func (s *Session) notify(peer *jsonrpc.Peer, method string, params any, overflow func()) {
	err := peer.Notify(context.Background(), method, params)
	switch {
	case errors.Is(err, jsonrpc.ErrFull) && overflow != nil:
		s.Log().Error("the client does not read: the session ends", "waiting", 2*s.server.MaxUnread)
		overflow()
	case err != nil:
		s.Log().Debug("notification not sent", "method", method, "error", err)
	}
}

// warn sends a log message of the level warning, if the client wants those. The caller holds the mutex.
func (o *outlet) warn(words string) {
	wants := []mcptypes.LoggingLevel{
		mcptypes.LoggingLevelDebug, mcptypes.LoggingLevelInfo,
		mcptypes.LoggingLevelNotice, mcptypes.LoggingLevelWarning,
	}
	if least := o.to.level(); least == nil || !slices.Contains(wants, *least) {
		return
	}
	o.session.notify(o.to.peer, mcptypes.NotificationsMessage.Name(), &mcptypes.LoggingMessageNotificationParams{
		Level: mcptypes.LoggingLevelWarning, Logger: new("codex"), Data: quote(plain.OneLine(words, 0)),
	}, nil)
}

// pace lets turns wait for the client. They continue one by one, so that many turns at
// once stay within the limit too. It holds a token while a turn waits for the client.
type pace chan struct{}

// wait waits until the client has read enough or ctx ends.
func (p pace) wait(ctx context.Context, peer *jsonrpc.Peer, most int) {
	ahead := func() bool { return peer.Unsent() >= most/8 }
	if !ahead() {
		return
	}
	select {
	case p <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-p }()
	for ahead() && peer.Flush(ctx) == nil {
	}
}

// gap counts the deltas, pieces of a text that another event holds as a whole, that one receiver of events misses. Only the goroutine that sends
// the events may use it. The zero gap is ready.
type gap struct{ missed int }

// send sends an event, unless it is a delta and the client is too far behind. After a gap
// it first sends an event with the number of deltas left out.
func (g *gap) send(peer *jsonrpc.Peer, most int, e protocol.Event, send func(protocol.Event)) {
	if strings.HasSuffix(e.Msg.EventType(), "_delta") && peer.Unsent() >= most {
		g.missed++
		return
	}
	if g.missed > 0 {
		words := fmt.Sprintf("%d deltas were left out: the client did not read.", g.missed)
		g.missed = 0
		send(protocol.Event{ID: e.ID, Msg: protocol.BackgroundEvent{Message: words}})
	}
	send(e)
}
