package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/node"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/workers"
	"github.com/nats-io/nats.go/jetstream"
)

// TestDrain checks that a node that drains gives away its idle users, that one with work stays
// until the work has ended, and that both still answer.
func TestDrain(t *testing.T) {
	s := start(t)
	a := s.join("a", nil)
	work := filepath.Join(s.users["bob"].Folders[0], "busy")
	if err := os.WriteFile(work, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a.use("ann")
	busy := a.use("bob")
	if err := node.Drain(t.Context(), s.broker.Conn, a.id); err != nil {
		t.Fatal(err)
	}
	if !a.describe().Draining {
		t.Error("fronts do not learn before the operator that the node drains")
	}
	free := func(user string) func() bool {
		return func() bool {
			_, err := s.leases.Get(t.Context(), user)
			return errors.Is(err, lease.ErrFree)
		}
	}
	until(t, "the idle user stays", free("ann"))
	if free("bob")() {
		t.Error("the user with work is gone")
	}
	a.ask(headOf(busy))
	if err := os.Remove(work); err != nil {
		t.Fatal(err)
	}
	until(t, "the user without work stays", free("bob"))
}

// TestHandOver checks that a node that drains gives a user whose turn waits for an answer to another node,
// although a stream is open, and that it keeps the user if there is none. The worker of a node that ends
// is killed, and learns nothing.
func TestHandOver(t *testing.T) {
	for name, other := range map[string]bool{"another node": true, "no other node": false} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			a := s.join("a", func(o *node.Options) { o.Labels = []string{"gpu"} })
			s.join("b", func(o *node.Options) { // before the user waits: it takes none on its own
				if other {
					o.Labels = []string{"gpu"}
				}
			})
			l := a.take("cid")
			held, err := a.send(headOf(l), "/hold")
			if err != nil {
				t.Fatal(err)
			}
			defer held.Body.Close()
			asked, err := a.send(headOf(l), "/ask")
			if err != nil {
				t.Fatal(err)
			}
			asked.Body.Close()
			until(t, "the node does not learn of the question", func() bool { return a.pool.Activity(t.Context(), "cid") == workers.Waiting })
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := a.Drain(ctx); err != nil {
				t.Fatal(err)
			}
			got, err := s.leases.Get(t.Context(), "cid")
			if other != errors.Is(err, lease.ErrFree) || !other && got != l {
				t.Errorf("the lease: %+v, %v", got, err)
			}
			if left := len(workersOf(t)); left != map[bool]int{true: 0, false: 1}[other] || !a.pool.Draining() {
				t.Errorf("%d workers", left)
			}
			a.close()
			if text, err := io.ReadAll(held.Body); err == nil {
				t.Errorf("the stream ends as if it were whole: %s", text)
			}
			if got, err := s.leases.Get(t.Context(), "cid"); !errors.Is(err, lease.ErrFree) {
				t.Errorf("the lease afterwards: %+v, %v", got, err)
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
	a := s.join("a", func(o *node.Options) {
		nodes, err := s.broker.Stream.KeyValue(t.Context(), placement.Bucket)
		if err != nil {
			t.Fatal(err)
		}
		o.Nodes = placement.New(silent{nodes})
	})
	asked, err := a.send(headOf(a.use("ann")), "/ask")
	if err != nil {
		t.Fatal(err)
	}
	asked.Body.Close()
	until(t, "the node does not learn of the question", func() bool { return a.pool.Activity(t.Context(), "ann") == workers.Waiting })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := errors.Join(a.Drain(ctx), ctx.Err()); err != nil {
		t.Error(err)
	}
}

// TestEnd checks that a node that ends has no worker, no lease and no entry, and refuses to drain
// or to take. Alone it keeps its idle workers while it drains.
func TestEnd(t *testing.T) {
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprintf("alone %v", alone), func(t *testing.T) {
			s := start(t)
			a := s.join("a", func(o *node.Options) { o.Alone = alone })
			l := a.use("ann")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := a.Drain(ctx); err != nil {
				t.Fatal(err)
			}
			if alone {
				<-time.After(5 * interval) // at least so long nothing may happen
				a.ask(headOf(l))
				if a.describe().Draining {
					t.Error("the node looks as if another one could take its users")
				}
			}
			a.close()
			if left := workersOf(t); len(left) > 0 {
				t.Errorf("the workers %v are left", left)
			}
			if got, err := s.leases.Get(t.Context(), "ann"); !errors.Is(err, lease.ErrFree) {
				t.Errorf("the lease: %+v, %v", got, err)
			}
			if left := s.published(); len(left) > 0 {
				t.Errorf("the nodes: %+v", left)
			}
			if _, err := node.Take(ctx, s.broker.Conn, a.id, "ann"); err == nil {
				t.Error("the node takes a lease")
			}
		})
	}
}

// TestSpread checks that a node with more users than another one gives idle users to it, one after the other, and
// that nobody who works moves, nor anybody back.
func TestSpread(t *testing.T) {
	s := start(t)
	s.users["dan"] = settings.Principal{Folders: s.users["eve"].Folders, Home: s.users["eve"].Home + "-dan"}
	rare := func(o *node.Options) { o.Capacity = 10 }
	a := s.join("a", rare)
	work := filepath.Join(s.users["ann"].Folders[0], "busy")
	if err := os.WriteFile(work, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	busy, holds, asks := a.use("ann"), a.use("bob"), a.use("dan")
	for path, l := range map[string]lease.Lease{"/hold": holds, "/ask": asks} {
		answer, err := a.send(headOf(l), path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
	}
	until(t, "the node does not learn of the question", func() bool { return a.pool.Activity(t.Context(), "dan") == workers.Waiting })
	look := a.Spreading()
	stays := func(when string, want ...lease.Lease) {
		t.Helper()
		look(t.Context())
		for _, l := range want {
			if got, err := s.leases.Get(t.Context(), l.User); err != nil || got != l {
				t.Errorf("%s: the lease %+v is now %+v, %v", when, l, got, err)
			}
		}
	}
	idle := a.use("eve")
	a.publishes(4)
	stays("alone", busy, holds, asks, idle)
	b := s.join("b", rare)
	stays("the users who work", busy, holds, asks) // four of four, so two are too many
	gone := func() {
		t.Helper()
		if got, err := s.leases.Get(t.Context(), "eve"); !errors.Is(err, lease.ErrFree) {
			t.Fatalf("the idle user stays: %+v, %v", got, err)
		}
	}
	gone()
	back := a.use("eve") // a front has asked this node nevertheless
	a.publishes(4)
	stays("she was given away before", back)
	a.Spreading()(t.Context()) // which does not know that
	gone()
	if first := placement.Pick(s.published(), nil)[0]; first.ID != b.id {
		t.Errorf("her next request comes to %+v", first)
	}
	moved := b.use("eve")
	b.publishes(1)
	b.Spreading()(t.Context())
	if err := os.Remove(work); err != nil {
		t.Fatal(err)
	}
	stays("three of four", holds, asks, moved, busy) // one above the average
}

// publishes waits until others know how many users the node has.
func (m *member) publishes(users int) {
	m.s.t.Helper()
	until(m.s.t, "the node does not publish its users", func() bool { return m.describe().Users == users })
}
