package broker_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
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
		_, leases, _ := clustertest.Buckets(t, b, ttl)
		h := clustertest.Hold(t, leases, lease.HolderOptions{ID: "a"})
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
