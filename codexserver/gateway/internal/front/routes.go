package front

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
)

// routes finds the nodes of users.
type routes struct {
	leases *lease.Leases

	mu    sync.Mutex
	known map[string]lease.Lease // by user; may be out of date
}

// find returns where a request of a user may go: to the node with the lease, or, if it is free, to the first of several nodes that
// takes it. Those have no epoch.
func (r *routes) find(ctx context.Context, user string) (to []lease.Lease, err error) {
	r.mu.Lock()
	got, ok := r.known[user]
	r.mu.Unlock()
	if ok {
		return []lease.Lease{got}, nil
	}
	got, err = r.leases.Get(ctx, user)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.known[user] = got
		return []lease.Lease{got}, nil
	}
	if !errors.Is(err, lease.ErrFree) {
		return nil, err
	}
	nodes, err := r.leases.Nodes.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range placement.Pick(nodes, user) {
		to = append(to, lease.Lease{User: user, Node: n.Name, ID: n.ID, Address: n.Address})
	}
	if len(to) == 0 {
		return nil, fmt.Errorf("no node takes the user: of %d nodes, all drain", len(nodes))
	}
	return to, nil
}

// forget makes find look again for the lease of a user, unless it already knows another one.
func (r *routes) forget(l lease.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[l.User] == l {
		delete(r.known, l.User)
	}
}
