package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
)

// Lease says which node runs the worker of a user. The value in the bucket has Node, ID and Term: its key is the user, its number
// the epoch, and the entry of the process has the address.
type Lease struct {
	// User is the user.
	User string `json:"user,omitzero"`
	// Node is the name of the node, ID that of its process, and Term that of the process's entry.
	Node string `json:"node"`
	ID   string `json:"id"`
	Term uint64 `json:"term"`
	// Epoch increases with each lease of the bucket.
	Epoch uint64 `json:"epoch,omitzero"`
	// Address is where fronts reach the node.
	Address string `json:"address,omitzero"`
}

// Bucket is the name of the bucket of users. Its keys last until they are removed.
const Bucket = "codexmcp_leases"

// Leases are the leases of all users. It is safe for concurrent use.
type Leases struct {
	// Nodes are those of the service.
	Nodes *placement.Nodes
	users jetstream.KeyValue
	ttl   time.Duration
}

// New returns the leases in a bucket of users, of nodes whose entries last for ttl, which is at least a second.
func New(users jetstream.KeyValue, nodes *placement.Nodes, ttl time.Duration) *Leases {
	return &Leases{nodes, users, ttl}
}

// MaxValue bounds a lease in the bucket, in bytes.
const MaxValue = 1024

var (
	// ErrFree means that no node has the lease of a user.
	ErrFree = errors.New("no node has the lease")
	// errBehind means that a server has answered that lags behind.
	errBehind = errors.New("what NATS answers is changing")
)

// Get returns the lease of a user, or [ErrFree]. It may be a little out of date.
func (l *Leases) Get(ctx context.Context, user string) (Lease, error) {
	got, err := l.get(ctx, user)
	if err != nil {
		return Lease{}, err
	}
	n, err := l.Nodes.Get(ctx, got.ID)
	if errors.Is(err, jetstream.ErrKeyNotFound) || err == nil && n.Term != got.Term {
		return Lease{}, ErrFree
	}
	got.Address = n.Address
	return got, err
}

// All returns all leases. It ignores what no node writes.
func (l *Leases) All(ctx context.Context) ([]Lease, error) {
	nodes, err := l.Nodes.All(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := placement.Entries(ctx, l.users)
	if err != nil {
		return nil, err
	}
	var all []Lease
	for _, entry := range entries {
		got, err := read(entry)
		at := slices.IndexFunc(nodes, func(n placement.Node) bool {
			return err == nil && n.ID == got.ID &&
				n.Term == got.Term
		})
		if at >= 0 {
			got.Address = nodes[at].Address
			all = append(all, got)
		}
	}
	return all, nil
}

// get returns what the bucket has for a user, which may be the lease of a process that has lost it, or [ErrFree].
func (l *Leases) get(ctx context.Context, user string) (Lease, error) {
	entry, err := l.users.Get(ctx, user)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Lease{}, ErrFree
	}
	if err != nil {
		return Lease{}, err
	}
	return read(entry)
}

// read reads a value of the bucket.
func read(entry jetstream.KeyValueEntry) (got Lease, err error) {
	err = json.Unmarshal(entry.Value(), &got, json.RejectUnknownMembers(true))
	if err == nil && (got.ID == "" || got.Term == 0 || got.User != "" || got.Epoch != 0 || got.Address != "") {
		err = errors.New("not a lease")
	}
	if err != nil {
		return Lease{}, fmt.Errorf("the lease of %s; if no node is of a later version, remove the key: %w", entry.Key(),
			err)
	}
	got.User, got.Epoch = entry.Key(), entry.Revision()
	return got, nil
}

// settle returns the lease with the address of its process if the process holds it. Otherwise it returns [ErrFree],
// and the process cannot hold it again.
func (l *Leases) settle(ctx context.Context, got Lease) (Lease, error) {
	n, err := l.Nodes.Get(ctx, got.ID)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		if _, err = l.Nodes.Write(ctx, placement.Node{ID: got.ID, Name: got.Node, Ended: true}, 0); err == nil {
			err = ErrFree
		}
	case err == nil && n.Term < got.Term:
		err = errBehind
	case err == nil && n.Term > got.Term:
		err = ErrFree
	}
	got.Address = n.Address
	return got, err
}
