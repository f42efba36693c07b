package node_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/node"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats.go/jetstream"
)

// TestDrain checks that a node that drains gives away its idle users, that one with work stays
// until the work has ended, and that both still answer.
func TestDrain(t *testing.T) {
	s := start(t)
	a := s.join("a")
	work := filepath.Join(s.users["bob"].Folders[0], "busy")
	must.OK(t, os.WriteFile(work, nil, 0o600))
	a.use("ann")
	busy := a.use("bob")
	must.OK(t, node.Drain(t.Context(), s.broker.Conn, a.id))
	if n, err := s.leases.Nodes.Get(t.Context(), a.id); !n.Draining {
		t.Errorf("fronts do not learn before the operator that the node drains: %v", err)
	}
	a.refused("it takes a user", headOf(lease.Lease{User: "eve"}))
	clustertest.Until(t, "the idle user stays", func() bool { return s.free("ann") })
	if s.free("bob") {
		t.Error("the user with work is gone")
	}
	a.ask(headOf(busy), "/")
	must.OK(t, os.Remove(work))
	clustertest.Until(t, "the user without work stays", func() bool { return s.free("bob") })
}

// TestHandOver checks that a node that drains gives a user whose turn waits for an answer to another node,
// although a stream is open, and that it keeps the user if there is none. The worker of a node that ends
// is killed, and learns nothing; neither a lease nor an entry is left, and the node takes no user.
func TestHandOver(t *testing.T) {
	for name, other := range map[string]bool{"another node": true, "no other node": false} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			a := s.join("a")
			if other {
				s.join("b") // it takes none on its own
			}
			l := a.use("ann")
			breaksOff := a.hold(l)
			a.asks(l)
			must.OK(t, a.Drain(clustertest.Bounded(t)))
			if left := a.pool.Running(); s.free("ann") != other || (len(left) == 0) != other {
				t.Errorf("the lease is free: %v, the workers of %q run", s.free("ann"), left)
			}
			a.close()
			breaksOff()
			entry, err := s.leases.Nodes.Get(t.Context(), a.id)
			if left := a.pool.Running(); len(left) > 0 || !s.free("ann") || !errors.Is(err, jetstream.ErrKeyNotFound) {
				t.Errorf("left are the workers of %q, and %+v, %v", left, entry, err)
			}
		})
	}
}

// silent is a bucket that never answers who is in it.
type silent struct{ jetstream.KeyValue }

func (silent) WatchAll(ctx context.Context, _ ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestDrainWithoutAnswer checks that a node ends whose users could move, if NATS does not say where to.
func TestDrainWithoutAnswer(t *testing.T) {
	s := start(t)
	nodes := must.Get(s.broker.Stream.KeyValue(t.Context(), placement.Bucket))(t)
	s.leases.Nodes = placement.New(silent{nodes})
	a := s.join("a")
	a.asks(a.use("ann"))
	ctx := clustertest.Bounded(t)
	must.Check(t, errors.Join(a.Drain(ctx), ctx.Err()))
}
