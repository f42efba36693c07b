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
	acknowledged := &modern.SubscriptionsAcknowledgedNotificationParams{Meta: meta, Notifications: granted}
	err = modern.NotificationsSubscriptionsAcknowledged.Notify(q.ctx, q.rpc.Peer(), acknowledged)
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

// follow sends a task to the client of a request at once when its questions or its end come, and once a tick if its status
// message has changed, until the request or the task ends.
func (s *Session) follow(q *request, id string) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for sent := ""; ; {
		t, err := s.find(id)
		if err != nil {
			return
		}
		task, over, changed := t.seen(q.canAsk)
		shown, _ := modern.TaskOf(task)
		var keys []string
		if asks, ok := task.(*modern.InputRequiredTask); ok {
			keys = slices.Sorted(maps.Keys(asks.InputRequests))
		}
		if now := fmt.Sprint(shown.Status, keys, *shown.StatusMessage); now != sent {
			sent = now
			status := &modern.TaskStatusNotificationParams{
				Meta: &modern.NotificationMetaObject{SubscriptionID: &q.rpc.ID}, Task: task,
			}
			// It fails if the client has disconnected.
			_ = modern.NotificationsTasks.Notify(context.Background(), q.rpc.Peer(), status)
		}
		if over {
			return
		}
		select {
		case <-q.ctx.Done():
			return
		case <-ticker.C:
		case <-changed:
		}
	}
}
