package front

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/node"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// place is where a user is: the lease, and the address of its node, which is "" if nobody knows it.
type place struct {
	lease.Lease
	address string
}

// routes finds the nodes of users.
type routes struct {
	conn   *nats.Conn
	leases *lease.Leases
	nodes  *placement.Nodes

	mu    sync.Mutex
	known map[string]place // by user; may be out of date
	hurry bool             // find does not wait
}

// find returns the lease of a user. If it is free, a node takes it.
func (r *routes) find(ctx context.Context, user string, labels []string) (place, error) {
	r.mu.Lock()
	got, ok := r.known[user]
	r.mu.Unlock()
	if ok {
		return got, nil
	}
	for {
		got, err := r.leases.Get(ctx, user)
		if errors.Is(err, lease.ErrFree) {
			got, err = r.place(ctx, user, labels)
		}
		if err == nil {
			return r.locate(ctx, got)
		}
		r.mu.Lock()
		hurry := r.hurry
		r.mu.Unlock()
		if hurry || !errors.Is(err, errNoNode) {
			return place{}, err
		}
		// A node may be giving back its users, or starting.
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return place{}, err
		}
	}
}

// locate finds the address of the node with a lease.
func (r *routes) locate(ctx context.Context, l lease.Lease) (place, error) {
	n, err := r.nodes.Get(ctx, l.ID)
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) { // the entry of a node that has died ends before its leases
		return place{}, err
	}
	got := place{l, n.Address}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[l.User] = got
	return got, nil
}

// forget makes find look again for the place of a user, unless it already knows another one.
func (r *routes) forget(p place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[p.User] == p {
		delete(r.known, p.User)
	}
}

// errNoNode means that no node takes a user.
var errNoNode = errors.New("no node takes the user")

// place makes the best node take the lease of a user, or else the next one.
func (r *routes) place(ctx context.Context, user string, labels []string) (lease.Lease, error) {
	nodes, err := r.nodes.All(ctx)
	if err != nil {
		return lease.Lease{}, err
	}
	failed := fmt.Errorf("%w: of %d nodes, none has room and the labels %q", errNoNode, len(nodes), labels)
	for _, n := range placement.Pick(nodes, labels) {
		got, err := node.Take(ctx, r.conn, n.ID, user)
		if err == nil {
			return got, nil
		}
		failed = fmt.Errorf("%w: %s: %w", errNoNode, n.Name, err)
	}
	return lease.Lease{}, failed
}
