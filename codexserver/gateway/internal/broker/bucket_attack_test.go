package broker_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
)

// TestBucketAgain removes the buckets of leases and nodes, as an operator does who changes nats.lease. Later
// epochs are higher than earlier ones, so the user's state is not fenced for the next node.
func TestBucketAgain(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	b, err := broker.Connect(broker.Options{URL: "nats://" + serveNATS(t, nil, nil), Name: "test", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	last := uint64(0)
	for _, ttl := range []time.Duration{time.Minute, time.Minute, time.Hour} {
		kv, err := b.Open(t.Context(), broker.Bucket{Name: lease.Bucket, Replicas: 1, MaxValue: lease.MaxValue})
		if err != nil {
			t.Fatal(err)
		}
		nodes, err := b.Open(t.Context(), broker.Bucket{Name: placement.Bucket, TTL: ttl, Replicas: 1, MaxValue: placement.MaxValue})
		if err != nil {
			t.Fatal(err)
		}
		h := lease.New(kv, placement.New(nodes), ttl).NewHolder(lease.HolderOptions{ID: "a", Describe: func() placement.Node { return placement.Node{} }, Lost: func(string) {}, Logger: log})
		if err := h.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			got, err := h.Take(t.Context(), "ann")
			if err != nil {
				t.Fatal(err)
			}
			if got.Epoch <= last {
				t.Errorf("the epoch %d follows %d", got.Epoch, last)
			}
			last = got.Epoch
			if _, err := jetstore.Open(t.Context(), b.Stream, jetstore.Options{User: "ann", Epoch: got.Epoch}); err != nil {
				t.Errorf("the state with the epoch %d: %v", got.Epoch, err)
			}
			if err := h.Release(t.Context(), "ann"); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, bucket := range []string{lease.Bucket, placement.Bucket} {
			if err := b.Stream.DeleteKeyValue(t.Context(), bucket); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(20 * time.Millisecond) // an operator is not faster, and numbers begin with the time
	}
}

// TestBucketOfOthers opens a bucket that somebody else has made. It is used if keys last as long, and
// refused otherwise.
func TestBucketOfOthers(t *testing.T) {
	b, err := broker.Connect(broker.Options{URL: "nats://" + serveNATS(t, nil, nil), Name: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	o := broker.Bucket{Name: "others", TTL: time.Minute, Replicas: 1, MaxValue: 100}
	for range 2 {
		kv, err := b.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kv.Put(t.Context(), "key", make([]byte, 101)); err == nil {
			t.Error("a value is longer than allowed")
		}
		if _, err := kv.Put(t.Context(), "key", make([]byte, 100)); err != nil {
			t.Error(err)
		}
	}
	o.TTL = time.Hour
	if _, err := b.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "nats.lease must be the same") {
		t.Errorf("another time: %v", err)
	}
}
