// Package placement knows the nodes of a service, and picks one for a user.
//
// Each node publishes what it has in a bucket of NATS JetStream, again and again. The server
// removes a node that has not done so for a while.
package placement

import (
	"cmp"
	"context"
	"errors"
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
	// Labels are what users can ask for.
	Labels []string `json:"labels"`
	// Capacity is how many users the node can have, and Users those whose lease it has.
	Capacity int      `json:"capacity"`
	Users    []string `json:"users"`
	// Workers are the users whose worker runs.
	Workers []string `json:"workers"`
	// Draining means that the node takes no more users.
	Draining bool `json:"draining"`
	// Version is that of the program.
	Version string `json:"version"`
}

// free returns how many more users the node can have.
func (n *Node) free() int { return n.Capacity - len(n.Users) }

// fits reports whether a user who wants these labels can come to the node.
func (n *Node) fits(labels []string) bool {
	return !n.Draining && n.free() > 0 && !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(n.Labels, l) })
}

// Pick returns the nodes that have these labels and room for another user, best first: those
// with the most room, and of equal ones that with the smallest id.
func Pick(nodes []Node, labels []string) []Node {
	fit := slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return !n.fits(labels) })
	slices.SortFunc(fit, func(a, b Node) int { return cmp.Or(cmp.Compare(b.free(), a.free()), cmp.Compare(a.ID, b.ID)) })
	return fit
}

// Bucket is the name of the bucket.
const Bucket = "codexmcp_nodes"

// MaxValue bounds a node in the bucket, in bytes.
const MaxValue = 512 << 10

// Nodes are the nodes of the service. It is safe for concurrent use.
type Nodes struct{ kv jetstream.KeyValue }

// New returns the nodes in a bucket. The TTL of its keys is how long a node lasts that does not
// publish itself again.
func New(kv jetstream.KeyValue) *Nodes { return &Nodes{kv} }

// Publish publishes a node.
func (s *Nodes) Publish(ctx context.Context, n Node) error {
	value, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = s.kv.Put(ctx, n.ID, value)
	return err
}

// Remove removes a node that ends.
func (s *Nodes) Remove(ctx context.Context, id string) error { return s.kv.Delete(ctx, id) }

// Get returns the node with an id. It may be [jetstream.ErrKeyNotFound].
func (s *Nodes) Get(ctx context.Context, id string) (Node, error) {
	entry, err := s.kv.Get(ctx, id)
	if err != nil {
		return Node{}, err
	}
	n := Node{ID: id}
	return n, json.Unmarshal(entry.Value(), &n)
}

// All returns all nodes. It ignores what no node publishes.
func (s *Nodes) All(ctx context.Context) (nodes []Node, err error) {
	keys, err := s.kv.ListKeys(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = keys.Stop() }()
	for id := range keys.Keys() {
		entry, err := s.kv.Get(ctx, id)
		if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrInvalidKey) {
			continue
		}
		if err != nil {
			return nil, err
		}
		n := Node{ID: id}
		if json.Unmarshal(entry.Value(), &n) == nil {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}
