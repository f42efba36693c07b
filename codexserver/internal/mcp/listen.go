package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// tick is how often a listener checks the status message of its task.
const tick = time.Second

// listen acknowledges a subscription and keeps it open until the client cancels the
// request. Only tasks change on this server, lists do not.
func (s *Session) listen(q *request) (any, error) {
	var p modern.SubscriptionsListenRequestParams
	if err := p.UnmarshalJSON(q.rpc.Params); err != nil {
		return nil, Invalid("", "%v", err)
	}
	var granted modern.SubscriptionFilter
	if p.Notifications.TaskIDs != nil {
		if err := q.needTasks(); err != nil {
			return nil, err
		}
		granted.TaskIDs = []string{}
		for _, id := range slices.Compact(slices.Sorted(slices.Values(p.Notifications.TaskIDs))) {
			if _, err := s.find(id); err == nil { // otherwise it is unknown, or of another client
				granted.TaskIDs = append(granted.TaskIDs, id)
			}
		}
	}
	meta := &modern.NotificationMetaObject{SubscriptionID: &q.rpc.ID}
	err := modern.NotificationsSubscriptionsAcknowledged.Notify(q.ctx, q.rpc.Peer(), &modern.SubscriptionsAcknowledgedNotificationParams{Meta: meta, Notifications: granted})
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	for _, id := range granted.TaskIDs {
		running.Go(func() { s.follow(&listener{request: q}, id) })
	}
	<-q.ctx.Done()
	running.Wait()
	return nil, context.Cause(q.ctx)
}

// listener sends a task to the client whenever its status or questions change, and at most
// once a tick if only its status message changes.
type listener struct {
	request         *request
	status, message string // as last sent
}

// send sends the task if it has changed. Only the ticker sends it if just the message has
// changed.
func (l *listener) send(d modern.DetailedTask, ticker bool) {
	t, _ := modern.TaskOf(d)
	status, message := string(t.Status), ""
	if asks, ok := d.(*modern.InputRequiredTask); ok {
		status += fmt.Sprint(slices.Sorted(maps.Keys(asks.InputRequests)))
	}
	if t.StatusMessage != nil {
		message = *t.StatusMessage
	}
	if status == l.status && (!ticker || message == l.message) {
		return
	}
	l.status, l.message = status, message
	_ = modern.NotificationsTasks.Notify(context.Background(), l.request.rpc.Peer(), &modern.TaskStatusNotificationParams{
		Meta: &modern.NotificationMetaObject{SubscriptionID: &l.request.rpc.ID}, Task: d,
	}) // fails if the client has disconnected
}

// follow sends a task to a listener until its request or the task ends.
func (s *Session) follow(l *listener, id string) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for ticked := true; ; {
		f, err := s.find(id)
		if err != nil {
			return
		}
		task, over, changed := s.seen(f, l.request.canAsk)
		if l.send(task, ticked); over {
			return
		}
		select {
		case <-l.request.ctx.Done():
			return
		case <-ticker.C:
			ticked = true
		case <-changed:
			ticked = false
		}
	}
}
