package lease_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// ttl is that of the tests: the shortest that is sensible.
	ttl = time.Second
	// long is that of tests that fail if the system lets this process wait for a quarter of it.
	long = 4 * time.Second
	// forever is that of tests in which nothing expires.
	forever = time.Minute
)

func start(t *testing.T) *server.Server {
	t.Helper()
	return clustertest.Start(t, server.Options{DontListen: true, JetStream: true})
}

// node is a node with a connection of its own. A user's worker is a number in running.
type node struct {
	*lease.Holder
	leases       *lease.Leases
	users, nodes jetstream.KeyValue
	conn         *nats.Conn
	lost         chan string
	clock        *atomic.Int64 // how far its clock is ahead
}

func join(t *testing.T, s *server.Server, id string, ttl time.Duration, stop func(user string)) *node {
	t.Helper()
	conn, js := clustertest.Connect(t, s)
	users := must.Get(js.CreateOrUpdateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: lease.Bucket, LimitMarkerTTL: time.Second, Storage: jetstream.MemoryStorage}))(t)
	nodes := must.Get(js.CreateOrUpdateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: placement.Bucket, TTL: ttl, Storage: jetstream.MemoryStorage}))(t)
	n := &node{users: users, nodes: nodes, conn: conn, lost: make(chan string, 64), clock: &atomic.Int64{}}
	n.leases = lease.New(users, placement.New(nodes), ttl)
	begin := time.Now()
	n.Holder = clustertest.Hold(t, n.leases, lease.HolderOptions{
		ID: id, Clock: func() time.Duration { return time.Since(begin) + time.Duration(n.clock.Load()) },
		Lost: func(user string) {
			if stop != nil {
				stop(user)
			}
			n.lost <- user
		},
	})
	return n
}

func (n *node) take(t *testing.T, user string) lease.Lease {
	t.Helper()
	return must.Get(n.Take(clustertest.Bounded(t), user))(t)
}

func (n *node) admits(user string, epoch uint64) bool {
	_, release, err := n.Hold(context.Background(), user, epoch)
	if err == nil {
		release()
	}
	return err == nil
}

func (n *node) free(t *testing.T, user string) bool {
	t.Helper()
	_, err := n.leases.Get(t.Context(), user)
	return errors.Is(err, lease.ErrFree)
}

// meddled is a bucket whose answers are those of the test.
type meddled struct {
	jetstream.KeyValue
	create func(make func() (uint64, error)) (uint64, error) // nil makes the key
	get    error                                             // of each Get; nil gets the key
}

func (m meddled) Create(ctx context.Context, key string, value []byte, o ...jetstream.KVCreateOpt) (uint64, error) {
	create := func() (uint64, error) { return m.KeyValue.Create(ctx, key, value, o...) }
	if m.create == nil {
		return create()
	}
	return m.create(create)
}

func (m meddled) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if m.get != nil {
		return nil, m.get
	}
	return m.KeyValue.Get(ctx, key)
}

func holder(t *testing.T, id string, users, nodes jetstream.KeyValue) *lease.Holder {
	t.Helper()
	return clustertest.Hold(t, lease.New(users, placement.New(nodes), ttl), lease.HolderOptions{ID: id})
}

// TestTake checks that one of two nodes gets a lease, that the other learns of it, and that
// each lease has a larger epoch.
func TestTake(t *testing.T) {
	s := start(t)
	var held context.Context // of a request
	stop := func(string) {
		if held.Err() == nil {
			t.Error("the worker is stopped while requests can still start it")
		}
	}
	a, b := join(t, s, "a", forever, stop), join(t, s, "b", forever, stop)
	last := uint64(0)
	for range 5 {
		var got [2]lease.Lease
		var both sync.WaitGroup
		for i, n := range []*node{a, b} {
			both.Go(func() { got[i] = n.take(t, "ann") })
		}
		both.Wait()
		winner, loser := a, b
		if got[0].ID == "b" {
			winner, loser = b, a
		}
		if again := winner.take(t, "ann"); got[0] != got[1] || again != got[0] || again.Epoch <= last || again.User != "ann" {
			t.Fatalf("the leases %+v and %+v, after the epoch %d", got, again, last)
		}
		last = got[0].Epoch
		for _, epoch := range []uint64{0, last - 1, last + 1} {
			if winner.admits("ann", epoch) {
				t.Errorf("a request with the epoch %d of %d is admitted", epoch, last)
			}
		}
		var release func()
		var err error
		if held, release, err = winner.Hold(t.Context(), "ann", last); err != nil || loser.admits("ann", last) {
			t.Fatalf("who admits a request: %v", err)
		}
		must.OK(t, winner.Release(t.Context(), "ann", nil))
		if cause := context.Cause(held); !errors.Is(cause, lease.ErrLost) || !loser.free(t, "ann") {
			t.Errorf("the request of a released lease: %v", cause)
		}
		release()
	}
}

// TestTakeAtTheEnd checks that a closed holder holds no lease, also if it was being taken.
func TestTakeAtTheEnd(t *testing.T) {
	var h *lease.Holder
	a := join(t, start(t), "a", ttl, nil)
	h = holder(t, "b", meddled{KeyValue: a.users, create: func(create func() (uint64, error)) (uint64, error) {
		must.Check(t, h.Close(t.Context()))
		return create()
	}}, a.nodes)
	for range 2 {
		if _, err := h.Take(t.Context(), "ann"); err == nil || len(h.Users()) > 0 {
			t.Errorf("taken: %v, users %q", err, h.Users())
		}
	}
}

// TestRelease releases a lease that is in use, and takes it while its worker ends.
func TestRelease(t *testing.T) {
	ended := make(chan struct{})
	n := join(t, start(t), "a", forever, func(string) { <-ended })
	first := n.take(t, "ann")
	ctx := clustertest.Bounded(t)
	request, left := context.WithCancel(ctx)
	held, release, err := n.Hold(request, "ann", first.Epoch)
	must.OK(t, err)
	left()
	<-held.Done()
	used := func(open int) bool { return open > 0 }
	// The client has left, but what it has sent still runs.
	if err := n.Release(ctx, "ann", used); err != nil || n.Epoch("ann") == 0 {
		t.Errorf("a lease with a request is released: %v", err)
	}
	release()
	var over sync.WaitGroup
	over.Go(func() { must.Check(t, n.Release(ctx, "ann", used)) })
	clustertest.Until(t, "the lease is kept", func() bool { return n.Epoch("ann") == 0 && len(n.Users()) == 0 })
	over.Go(func() {
		if second, err := n.Take(ctx, "ann"); err != nil || second.Epoch <= first.Epoch {
			t.Errorf("the epoch %d after %d, %v", second.Epoch, first.Epoch, err)
		}
	})
	<-time.After(ttl / 20) // it waits
	close(ended)
	over.Wait()
}

// TestNeverTwo lets two nodes take a lease again and again, while the one that has it loses its
// connection or its clock. At no time may two workers run.
func TestNeverTwo(t *testing.T) {
	for name, lose := range map[string]func(n *node){
		"no connection": func(n *node) { n.conn.Close() },
		"suspended":     func(n *node) { n.clock.Store(int64(long)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			var running atomic.Int32
			stop := func(string) {
				<-time.After(ttl / 10) // as long as a worker may take to die
				running.Add(-1)
			}
			a, b := join(t, s, "a", long, stop), join(t, s, "b", long, stop)
			first := a.take(t, "ann")
			running.Add(1)
			lose(a)
			if name == "suspended" { // before anything else has looked at the clock
				if a.admits("ann", first.Epoch) {
					t.Error("a request is admitted after the deadline")
				}
			}
			var got lease.Lease
			clustertest.Until(t, "the other node never gets it", func() bool { got = b.take(t, "ann"); return got.ID == "b" })
			if n := running.Add(1); n != 1 || got.Epoch <= first.Epoch || a.Epoch("ann") != 0 {
				t.Errorf("%d workers run, the epoch %d follows %d", n, got.Epoch, first.Epoch)
			}
			must.OK(t, b.Release(t.Context(), "ann", nil))
			if n := running.Load(); n != 0 {
				t.Errorf("%d workers are left", n)
			}
		})
	}
}

// TestHandOver gives a lease to another node. Requests that come meanwhile are refused; those that are
// open get a moment.
func TestHandOver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ends bool // the open request, before the moment is over
		may  bool
	}{
		"an answer": {true, true}, "a stream": {false, true}, "it works again": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := join(t, start(t), "a", forever, nil)
			l := n.take(t, "ann")
			held, release, err := n.Hold(t.Context(), "ann", l.Epoch)
			must.OK(t, err)
			if tt.ends {
				time.AfterFunc(ttl/20, release)
			}
			err = n.HandOver(t.Context(), "ann", func() bool {
				if (held.Err() != nil) != tt.ends || n.admits("ann", l.Epoch) {
					t.Errorf("the open request: %v; or another one is admitted", held.Err())
				}
				return tt.may
			})
			if err != nil || n.admits("ann", l.Epoch) == tt.may || n.free(t, "ann") != tt.may || (len(n.lost) > 0) != tt.may {
				t.Errorf("%v, the lease is free: %v, %d workers are stopped", err, n.free(t, "ann"), len(n.lost))
			}
			if cause := context.Cause(held); !tt.ends && !errors.Is(cause, lease.ErrLost) {
				t.Errorf("the stream: %v", cause)
			}
		})
	}
}

// TestCloseWhileHandedOver checks that the end of a holder waits for the worker of a lease that is just being handed
// over.
func TestCloseWhileHandedOver(t *testing.T) {
	s := start(t)
	stops, stop := make(chan struct{}), make(chan struct{})
	var stopped atomic.Bool
	a := join(t, s, "a", forever, func(string) {
		close(stops)
		<-stop
		stopped.Store(true)
	})
	a.take(t, "ann")
	handed := make(chan error, 1)
	go func() { handed <- a.HandOver(t.Context(), "ann", func() bool { return true }) }()
	<-stops
	time.AfterFunc(50*time.Millisecond, func() { close(stop) })
	if err := a.Close(t.Context()); err != nil || !stopped.Load() {
		t.Errorf("the worker is stopped: %v, %v", stopped.Load(), err)
	}
	must.Check(t, <-handed)
}
