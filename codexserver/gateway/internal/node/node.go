package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/workers"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options configure a [Node]. All are required, except for Listener.
type Options struct {
	Conn   *nats.Conn
	Stream jetstream.JetStream
	Leases *lease.Leases
	// Pool runs the workers. The node closes it.
	Pool *workers.Pool
	// Name is that of the node, and Version that of the program.
	Name    string
	Version string
	// Listener is where fronts of other processes connect, with Certificates, and Address how they find it. The node
	// closes it. Without it only a front of this process reaches the node.
	Listener     net.Listener
	Certificates link.Certificates
	Address      string
	// Replicas is how many NATS servers keep the state of a user.
	Replicas int
	// Interval is how often the node looks for leases that are not used. It is a third of the time that nodes last for.
	Interval time.Duration
	// Metrics counts the leases that are lost.
	Metrics *metrics.Metrics
	Logger  *slog.Logger
}

// Node is a node of the service. It is safe for concurrent use.
type Node struct {
	o      Options
	server *link.Server
	holder *lease.Holder
	drains *nats.Subscription // see Drain
	// draining means that the node takes no more users, and gives away idle ones, and ending that the process ends, and
	// with it all sessions.
	draining, ending atomic.Bool

	stop    context.CancelFunc
	running sync.WaitGroup
}

// New starts a node. The caller must close it.
func New(ctx context.Context, o Options) (*Node, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	n := &Node{o: o}
	n.server = link.NewServer(n, o.Logger)
	n.holder = o.Leases.NewHolder(lease.HolderOptions{
		ID: n.server.ID(), Describe: n.describe, Lost: o.Pool.Kill, Metrics: o.Metrics, Logger: o.Logger,
		// The enclosure of the worker ends by itself, if this process has not ended it before.
		Renewed: func(user string, deadline time.Duration) { o.Pool.Extend(user, deadline+o.Interval/graceShare) },
	})
	o.Pool.Keep(n.open)
	serving, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.server.Listen(o.Listener, o.Certificates)
	var err error
	if n.drains, err = o.Conn.Subscribe(drainSubject(n.server.ID()), n.drain); err == nil {
		err = o.Conn.FlushWithContext(ctx) // others find the node only when it can be reached
	}
	if err == nil {
		err = n.holder.Join(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.running.Go(func() { n.tend(serving) })
	return n, nil
}

// takeTimeout bounds how long a node takes for a lease.
const takeTimeout = 5 * time.Second

// Admit implements [link.Handler]. For a front that knows no lease of the user, which says the epoch 0, the node takes it.
func (n *Node) Admit(ctx context.Context, head link.Head) (context.Context, func(), error) {
	user, epoch := head.User.Name, head.Epoch
	if !n.o.Pool.Knows(user) {
		return nil, nil, errors.New("the sender is not a user of this node")
	}
	if epoch == 0 {
		var err error
		if epoch, err = n.take(ctx, user); err != nil {
			return nil, nil, err
		}
	}
	return n.holder.Hold(ctx, user, epoch)
}

// take makes the node hold the lease of a user, if it is free, and returns its epoch.
func (n *Node) take(ctx context.Context, user string) (epoch uint64, err error) {
	if n.draining.Load() && n.holder.Epoch(user) == 0 {
		return 0, errors.New("it drains")
	}
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	got, err := n.holder.Take(ctx, user)
	if err == nil && got.ID != n.server.ID() {
		err = errors.New("another node has the lease")
	}
	return got.Epoch, err
}

// Serve implements [link.Handler].
func (n *Node) Serve(w http.ResponseWriter, r *http.Request, head link.Head) {
	n.o.Pool.Serve(w, r, head.User)
}

// Server receives the requests for the node.
func (n *Node) Server() *link.Server { return n.server }

// open opens the store of a user, whose lease this node holds. Its epoch
// is that of the lease: a node that takes the lease later fences this one.
func (n *Node) open(ctx context.Context, user string) (worker.Store, error) {
	epoch := n.holder.Epoch(user)
	if epoch == 0 {
		return nil, lease.ErrLost
	}
	return jetstore.Open(ctx, n.o.Stream, jetstore.Options{User: user, Replicas: n.o.Replicas, Epoch: epoch})
}

// describe returns what the node publishes.
func (n *Node) describe() placement.Node {
	return placement.Node{Name: n.o.Name, Address: n.o.Address, Version: n.o.Version, Draining: n.draining.Load()}
}

// tend releases leases that are not used, until ctx ends.
func (n *Node) tend(ctx context.Context) {
	tick := time.NewTicker(n.o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if !n.ending.Load() { // else Drain does
				n.sweep(ctx)
			}
		}
	}
}

// sweep releases the leases without a worker and without a request.
func (n *Node) sweep(ctx context.Context) {
	for _, user := range n.holder.Users() {
		used := func(open int) bool { return open > 0 || slices.Contains(n.o.Pool.Running(), user) }
		if err := n.holder.Release(ctx, user, used); err != nil {
			n.o.Logger.Warn("a lease could not be released", "principal", user, "error", err)
		}
	}
	if n.draining.Load() {
		n.move(ctx)
	}
}

const (
	// graceShare is the part of an interval that this process has for ending a worker itself.
	graceShare = 4
	// startTimeout bounds how long a node takes to publish itself.
	startTimeout = 10 * time.Second
	// endTimeout bounds how long a node that ends sends its last answers and gives back its
	// leases.
	endTimeout = 2 * time.Second
)

// Close kills the workers, as if the node had died, sends the last answers, and gives back the leases: another node, or the
// next process of this one, continues the turns, which would end otherwise.
func (n *Node) Close() error {
	n.draining.Store(true)
	n.ending.Store(true)
	n.stop()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	failed := n.holder.Close(ctx) // without NATS the leases and the entry expire
	err := n.o.Pool.Close()
	ctx, cancel = context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	err = errors.Join(err, n.server.Close(ctx)) // answers to clients that do not read them are cut off
	if n.drains != nil {
		err = errors.Join(err, n.drains.Unsubscribe())
	}
	n.running.Wait()
	if failed != nil {
		n.o.Logger.Warn("the leases could not be given back", "error", failed)
	}
	return err
}

// Figures returns what the node has.
func (n *Node) Figures(ctx context.Context) (f metrics.Figures) {
	for _, l := range n.o.Pool.Loads(ctx) {
		f.Requests, f.Sessions, f.Turns = f.Requests+max(l.Requests, 0), f.Sessions+max(l.Sessions, 0),
			f.Turns+max(l.Turns, 0)
	}
	f.Workers, f.Leases, f.Draining = len(n.o.Pool.Running()), len(n.holder.Users()), n.draining.Load()
	return f
}

// Reload calls apply, which [workers.Pool.Reload] has returned. It ends the workers that may not go on, and gives back the
// leases of users who no longer belong on this node: another one takes them, and continues their tasks.
func (n *Node) Reload(ctx context.Context, apply func() (end []string)) error {
	end := apply()
	var err error
	for _, user := range n.holder.Users() {
		if !n.o.Pool.Knows(user) || slices.Contains(end, user) {
			err = errors.Join(err, n.holder.Release(ctx, user, nil))
		}
	}
	return err
}
