package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
)

// Lease says which node runs the worker of a user.
type Lease struct {
	// User is the user.
	User string `json:"-"`
	// Node is the name of the node, and ID that of its process.
	Node string `json:"node"`
	ID   string `json:"id"`
	// Epoch increases with each lease of the bucket.
	Epoch uint64 `json:"epoch,omitzero"`
}

// Bucket is the name of the bucket.
const Bucket = "codexmcp_leases"

// Leases are the leases of all users. It is safe for concurrent use.
type Leases struct {
	kv  jetstream.KeyValue
	ttl time.Duration
}

// New returns the leases in a bucket whose keys last for ttl. 0 means that leases last until
// they are released, which is right where only one node exists. Otherwise it is at least a
// second.
func New(kv jetstream.KeyValue, ttl time.Duration) *Leases { return &Leases{kv, ttl} }

// MaxValue bounds a lease in the bucket, in bytes.
const MaxValue = 1024

// ErrFree means that no node has the lease of a user.
var ErrFree = errors.New("no node has the lease")

// Get returns the lease of a user, or [ErrFree].
func (l *Leases) Get(ctx context.Context, user string) (Lease, error) {
	got, _, err := l.get(ctx, user)
	return got, err
}

// errForged is wrapped by the error about a value that no node writes.
var errForged = errors.New("not a lease")

// All returns all leases. It ignores what no node writes.
func (l *Leases) All(ctx context.Context) ([]Lease, error) {
	keys, err := l.kv.ListKeys(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = keys.Stop() }()
	var all []Lease
	for user := range keys.Keys() {
		got, err := l.Get(ctx, user)
		if errors.Is(err, ErrFree) || errors.Is(err, errForged) || errors.Is(err, jetstream.ErrInvalidKey) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, got)
	}
	return all, nil
}

// get also returns the revision.
func (l *Leases) get(ctx context.Context, user string) (Lease, uint64, error) {
	entry, err := l.kv.Get(ctx, user)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Lease{}, 0, ErrFree
	}
	if err != nil {
		return Lease{}, 0, err
	}
	var got Lease
	if err := json.Unmarshal(entry.Value(), &got, json.RejectUnknownMembers(true)); err != nil {
		return Lease{}, 0, fmt.Errorf("the lease of %s: %w: %w", user, errForged, err)
	}
	got.User = user
	if got.Epoch == 0 { // not renewed yet
		got.Epoch = entry.Revision()
	}
	return got, entry.Revision(), nil
}
