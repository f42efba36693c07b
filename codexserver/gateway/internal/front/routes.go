package front

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/node"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/nats-io/nats.go"
)

// routes finds the nodes of users.
type routes struct {
	conn   *nats.Conn
	leases *lease.Leases
	nodes  *placement.Nodes

	hurry atomic.Bool // find does not wait
	mu    sync.Mutex
	known map[string]lease.Lease // by user; may be out of date
}

// find returns the lease of a user. If it is free, a node takes it.
func (r *routes) find(ctx context.Context, user string) (lease.Lease, error) {
	r.mu.Lock()
	got, ok := r.known[user]
	r.mu.Unlock()
	if ok {
		return got, nil
	}
	for {
		got, err := r.leases.Get(ctx, user)
		if errors.Is(err, lease.ErrFree) {
			got, err = r.place(ctx, user)
		}
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.known[user] = got
			return got, nil
		}
		if r.hurry.Load() || !errors.Is(err, errNoNode) {
			return lease.Lease{}, err
		}
		// A node may be giving back its users, or starting.
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return lease.Lease{}, err
		}
	}
}

// forget makes find look again for the lease of a user, unless it already knows another one.
func (r *routes) forget(l lease.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[l.User] == l {
		delete(r.known, l.User)
	}
}

// errNoNode means that no node takes a user.
var errNoNode = errors.New("no node takes the user")

// place makes the first node that can take the lease of a user.
func (r *routes) place(ctx context.Context, user string) (lease.Lease, error) {
	nodes, err := r.nodes.All(ctx)
	if err != nil {
		return lease.Lease{}, err
	}
	failed := fmt.Errorf("%w: of %d nodes, all drain", errNoNode, len(nodes))
	for _, n := range placement.Pick(nodes, user) {
		got, err := node.Take(ctx, r.conn, n.ID, user)
		if err == nil {
			return got, nil
		}
		failed = fmt.Errorf("%w: %s: %w", errNoNode, n.Name, err)
	}
	return lease.Lease{}, failed
}
