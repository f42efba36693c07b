// Package placement knows the nodes of a service, and picks one for a user.
//
// Each node writes what it is and has into a bucket of NATS JetStream, again and again. The server
// removes a node that has not done so for a while.
package placement

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
)

// Node is a process that runs workers.
type Node struct {
	// ID is that of the process. It is the key in the bucket.
	ID string `json:"-"`
	// Name is the name in the configuration.
	Name string `json:"name"`
	// Address is where fronts reach it, a host and a port. "" means that only those of its process do.
	Address string `json:"address,omitzero"`
	// Draining means that the node takes no more users.
	Draining bool `json:"draining"`
	// Version is that of the program.
	Version string `json:"version"`
	// Term is the number of the entry's first value. The process keeps it as long as it renews the entry.
	Term uint64 `json:"term,omitzero"`
	// Ended means that another process has found that this one has lost its entry.
	Ended bool `json:"ended,omitzero"`
	// Revision is the number of the entry's value.
	Revision uint64 `json:"-"`
}

// Pick returns the nodes that take users, in the order in which they should be asked to take one. It is that of a hash of
// the user and the name of the node (rendezvous hashing): each user has a favourite, which stays the same while other nodes come
// and go.
func Pick(nodes []Node, user string) []Node {
	fit := slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.Draining })
	slices.SortFunc(fit, func(a, b Node) int {
		return cmp.Or(cmp.Compare(score(b.Name, user), score(a.Name, user)), cmp.Compare(a.ID, b.ID))
	})
	return fit
}

// score returns how much a node is for a user.
func score(node, user string) uint64 {
	sum := sha256.Sum256([]byte(node + "\x00" + user))
	return binary.BigEndian.Uint64(sum[:])
}

// Bucket is the name of the bucket.
const Bucket = "codexmcp_nodes"

// MaxValue bounds a node in the bucket, in bytes.
const MaxValue = 64 << 10

// Nodes are the nodes of the service. It is safe for concurrent use.
type Nodes struct{ kv jetstream.KeyValue }

// New returns the nodes in a bucket. The TTL of its keys is how long a node lasts that does not
// write itself again.
func New(kv jetstream.KeyValue) *Nodes { return &Nodes{kv} }

// Write writes the entry of a node, and returns its number. revision is the number of the value that it replaces, and
// 0 if there is none. See [Changed] for the error if it has changed.
func (s *Nodes) Write(ctx context.Context, n Node, revision uint64) (uint64, error) {
	value, err := json.Marshal(n)
	if err != nil {
		return 0, err
	}
	if revision == 0 {
		return s.kv.Create(ctx, n.ID, value)
	}
	return s.kv.Update(ctx, n.ID, value, revision)
}

// Remove removes a node that ends, whatever the number of its entry is: the answer to its last renewal may be lost.
func (s *Nodes) Remove(ctx context.Context, id string) error { return s.kv.Delete(ctx, id) }

// Get returns the node with an id. It may be [jetstream.ErrKeyNotFound].
func (s *Nodes) Get(ctx context.Context, id string) (Node, error) {
	entry, err := s.kv.Get(ctx, id)
	if err != nil {
		return Node{}, err
	}
	return read(entry)
}

func read(entry jetstream.KeyValueEntry) (n Node, err error) {
	if err = json.Unmarshal(entry.Value(), &n); err != nil {
		return Node{}, fmt.Errorf("the node %s: %w", entry.Key(), err)
	}
	n.ID, n.Revision = entry.Key(), entry.Revision()
	n.Term = cmp.Or(n.Term, n.Revision)
	return n, nil
}

// All returns all nodes. It ignores those that have ended, and what no node writes.
func (s *Nodes) All(ctx context.Context) (nodes []Node, err error) {
	entries, err := Entries(ctx, s.kv)
	for _, entry := range entries {
		if n, err := read(entry); err == nil && !n.Ended {
			nodes = append(nodes, n)
		}
	}
	return nodes, err
}

// Entries returns what a bucket has.
func Entries(ctx context.Context, kv jetstream.KeyValue) (all []jetstream.KeyValueEntry, err error) {
	watcher, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, err
	}
	defer func() { _ = watcher.Stop() }() // the connection may have ended
	for {
		select {
		case entry, ok := <-watcher.Updates():
			switch {
			case !ok:
				return nil, fmt.Errorf("the bucket %s: the connection has ended", kv.Bucket())
			case entry == nil: // these are all
				return all, nil
			}
			all = append(all, entry)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Changed reports whether an error means that a key has another value than the one that was to be replaced.
func Changed(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}
