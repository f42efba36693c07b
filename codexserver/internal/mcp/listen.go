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
	leave, err := s.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
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
	err = modern.NotificationsSubscriptionsAcknowledged.Notify(q.ctx, q.rpc.Peer(), &modern.SubscriptionsAcknowledgedNotificationParams{Meta: meta, Notifications: granted})
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	for _, id := range granted.TaskIDs {
		running.Go(func() { s.follow(q, id) })
	}
	<-q.ctx.Done()
	running.Wait()
	return nil, context.Cause(q.ctx)
}

// shows returns what a listener is sent at once if it has changed, and the status message.
func shows(d modern.DetailedTask) (status, message string) {
	t, _ := modern.TaskOf(d)
	status = string(t.Status)
	if asks, ok := d.(*modern.InputRequiredTask); ok {
		status += fmt.Sprint(slices.Sorted(maps.Keys(asks.InputRequests)))
	}
	if t.StatusMessage != nil {
		message = *t.StatusMessage
	}
	return status, message
}

// follow sends a task to the client of a request whenever its status or questions change, and at most once a tick if
// only its status message changes, until the request or the task ends.
func (s *Session) follow(q *request, id string) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	status, message := "", "" // as last sent
	for ticked := true; ; {
		t, err := s.find(id)
		if err != nil {
			return
		}
		task, over, changed := t.seen(q.canAsk)
		if now, words := shows(task); now != status || ticked && words != message {
			status, message = now, words
			_ = modern.NotificationsTasks.Notify(context.Background(), q.rpc.Peer(), &modern.TaskStatusNotificationParams{
				Meta: &modern.NotificationMetaObject{SubscriptionID: &q.rpc.ID}, Task: task,
			}) // fails if the client has disconnected
		}
		if over {
			return
		}
		select {
		case <-q.ctx.Done():
			return
		case <-ticker.C:
			ticked = true
		case <-changed:
			ticked = false
		}
	}
}
