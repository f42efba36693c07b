package lease

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// slowKV is a bucket that takes a second for each update, on a clock.
type slowKV struct {
	jetstream.KeyValue
	now *time.Duration
}

// Update implements [jetstream.KeyValue].
func (kv slowKV) Update(_ context.Context, _ string, _ []byte, last uint64) (uint64, error) {
	*kv.now += time.Second
	return last + 1, nil
}

// TestDeadlineOfARenewal counts from when a renewal was sent. The server may have begun to count as
// early as that.
func TestDeadlineOfARenewal(t *testing.T) {
	now, renewed := time.Minute, time.Duration(0)
	h := &Holder{leases: New(slowKV{now: &now}, 6*time.Second), o: HolderOptions{
		Clock:   func() time.Duration { return now },
		Renewed: func(_ string, deadline time.Duration) { renewed = deadline },
	}}
	x := &held{lease: Lease{User: "ann", Epoch: 3}, revision: 7, renewing: true}
	h.renew(t.Context(), x)
	want := time.Minute + h.fence()
	if x.deadline != want || renewed != want || x.revision != 8 || x.renewing {
		t.Errorf("the deadline is %v, and %v for the worker, want %v; revision %d, renewing %t", x.deadline, renewed, want, x.revision, x.renewing)
	}
}
