package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// subscriptions are the requests that wait for notifications.
type subscriptions struct {
	closed chan struct{}

	mu   sync.Mutex
	open map[*subscription]struct{}
}

type subscription struct {
	peer *jsonrpc.Peer
	meta *modern.NotificationMetaObject // in each of its notifications
	want modern.SubscriptionFilter
}

func newSubscriptions() *subscriptions {
	return &subscriptions{closed: make(chan struct{}), open: make(map[*subscription]struct{})}
}

// listen is open until its client cancels it, or the server ends.
func (s *subscriptions) listen(
	ctx context.Context, p *modern.SubscriptionsListenRequestParams,
) (*modern.SubscriptionsListenResult, error) {
	o := originOf(ctx)
	sub := &subscription{peer: o.peer, meta: &modern.NotificationMetaObject{SubscriptionID: &o.id},
		want: modern.SubscriptionFilter{
			ToolsListChanged: p.Notifications.ToolsListChanged, PromptsListChanged: p.Notifications.PromptsListChanged,
		}}
	// Under the lock, so that nothing comes before it.
	s.mu.Lock()
	err := modern.NotificationsSubscriptionsAcknowledged.Notify(ctx, sub.peer,
		&modern.SubscriptionsAcknowledgedNotificationParams{
			Meta: sub.meta, Notifications: sub.want,
		})
	s.open[sub] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, sub)
	}()
	if err != nil {
		return nil, fmt.Errorf("acknowledge: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.closed:
	}
	return &modern.SubscriptionsListenResult{Meta: modern.SubscriptionsListenResultMetaObject{
		ServerInfo: identity.ServerInfo, SubscriptionID: o.id,
	}}, nil
}

// send sends a notification to those who want it. If that fails, the end of the
// connection removes the subscription.
func (s *subscriptions) send(ctx context.Context, want func(modern.SubscriptionFilter) *bool, n interface {
	Notify(context.Context, modern.Notifier, *modern.NotificationParams) error
}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.open {
		if yes := want(sub.want); yes != nil && *yes {
			_ = n.Notify(ctx, sub.peer, &modern.NotificationParams{Meta: sub.meta})
		}
	}
}

// changeTools announces that the list of tools has changed.
func changeTools(ctx context.Context, c *call) (modern.AnyCallToolResult, error) {
	c.server.subscriptions.send(ctx, func(f modern.SubscriptionFilter) *bool { return f.ToolsListChanged },
		modern.NotificationsToolsListChanged)
	return say("sent"), nil
}

func changePrompts(ctx context.Context, c *call) (modern.AnyCallToolResult, error) {
	c.server.subscriptions.send(ctx, func(f modern.SubscriptionFilter) *bool { return f.PromptsListChanged },
		modern.NotificationsPromptsListChanged)
	return say("sent"), nil
}
