package node

import (
	"context"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
)

const (
	// spreadInterval is how often a node looks whether it has more users than others.
	spreadInterval = 30 * time.Second
	// spreadUsers is how many users it gives away then, at most.
	spreadUsers = 5
	// spreadQuiet is how long a user must not have sent a request.
	spreadQuiet = time.Minute
	// spreadMemory is how long a user who was given away counts as one who comes to another node, and stays
	// if it comes back.
	spreadMemory = 10 * time.Minute
)

// spreading gives idle users away while this node has more users than others. The next request of such a user
// comes to the node with the most room. Only one goroutine uses it.
type spreading struct {
	n     *Node
	quiet time.Duration
	lease func(ctx context.Context, user string) (lease.Lease, error)
	given map[string]time.Time // users who were given away
}

func newSpreading(n *Node) *spreading {
	return &spreading{n: n, quiet: spreadQuiet, lease: n.o.Leases.Get, given: map[string]time.Time{}}
}

// run looks again and again until ctx ends.
func (s *spreading) run(ctx context.Context) {
	tick := time.NewTicker(spreadInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.look(ctx)
		}
	}
}

// look gives away a few users if there are too many.
func (s *spreading) look(ctx context.Context) {
	n, id := s.n, s.n.server.ID()
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	nodes, err := n.o.Nodes.All(looking)
	if err != nil {
		return // the holder of the leases says that NATS does not answer
	}
	surplus := placement.Surplus(nodes, id, s.away(looking))
	if surplus == 0 { // so it is while the node drains
		return
	}
	idle := slices.DeleteFunc(n.o.Pool.Idle(ctx, s.quiet), func(user string) bool { return !s.given[user].IsZero() })
	away := placement.Spread(nodes, id, idle, func(user string) []string {
		p, _ := n.users.Get(user)
		return p.Labels
	})
	for _, user := range away[:min(len(away), surplus, spreadUsers)] {
		done := n.o.Pool.EndIdle(user)
		if done == nil {
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
		n.releaseUnused(ctx, user)
		if !slices.Contains(n.holder.Users(), user) {
			s.given[user] = time.Now()
			n.o.Logger.Info("a user goes to another node", "principal", user)
		}
	}
	n.publish(ctx)
}

// away forgets the users who have come to another node, and returns how many of the others no node has.
func (s *spreading) away(ctx context.Context) (away int) {
	for user, at := range s.given {
		if time.Since(at) > spreadMemory {
			delete(s.given, user)
			continue
		}
		switch l, err := s.lease(ctx, user); {
		case err != nil:
			away++
		case l.ID != s.n.server.ID():
			delete(s.given, user)
		}
	}
	return away
}
