package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// tick is how often a listener checks the status message of its task.
const tick = time.Second

// listen acknowledges a subscription and keeps it open until the client cancels the
// request. Only tasks change on this server, lists do not.
func (s *ModernSession) listen(q *request) (any, error) {
	var p modern.SubscriptionsListenRequestParams
	if err := p.UnmarshalJSON(q.rpc.Params); err != nil {
		return nil, Invalid("", "%v", err)
	}
	var granted modern.SubscriptionFilter
	var listeners []func(context.Context)
	if p.Notifications.TaskIDs != nil {
		if err := q.needTasks(); err != nil {
			return nil, err
		}
		granted.TaskIDs = []string{}
		for _, id := range slices.Compact(slices.Sorted(slices.Values(p.Notifications.TaskIDs))) {
			t, _, _, err := s.find(id)
			if err != nil {
				continue // unknown, or of another client
			}
			granted.TaskIDs = append(granted.TaskIDs, id)
			l := &listener{request: q}
			if t != nil {
				listeners = append(listeners, func(ctx context.Context) { t.follow(ctx, l) })
			} else {
				listeners = append(listeners, func(ctx context.Context) { s.look(ctx, id, l) })
			}
		}
	}
	meta := &modern.NotificationMetaObject{SubscriptionID: &q.rpc.ID}
	err := modern.NotificationsSubscriptionsAcknowledged.Notify(q.ctx, q.rpc.Peer(), &modern.SubscriptionsAcknowledgedNotificationParams{Meta: meta, Notifications: granted})
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	for _, listen := range listeners {
		running.Go(func() { listen(q.ctx) })
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

// follow sends the task to a listener until ctx or the task ends.
func (t *task) follow(ctx context.Context, l *listener) {
	c := t.call
	c.mu.Lock()
	t.listeners[l] = true
	l.send(t.detailed(l.request.canAsk), true)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(t.listeners, l)
		c.mu.Unlock()
	}()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.mu.Lock()
			over := t.over
			l.send(t.detailed(l.request.canAsk), true)
			c.mu.Unlock()
			if over {
				return
			}
		}
	}
}

// notify sends the task to its listeners. The caller holds the call's mutex.
func (t *task) notify() {
	for l := range t.listeners {
		l.send(t.detailed(l.request.canAsk), false)
	}
}

// look sends a task of another process, as in its file, until ctx or the task ends.
func (s *ModernSession) look(ctx context.Context, id string, l *listener) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		_, file, owner, err := s.find(id)
		if err != nil {
			return
		}
		l.send(s.foreign(file, owner), true)
		if owner != taskfile.Other {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
