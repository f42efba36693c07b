package lease

import (
	"context"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats.go/jetstream"
)

// slowKV is a bucket that takes a second for each write, on a clock.
type slowKV struct {
	jetstream.KeyValue
	now *time.Duration
}

func (kv slowKV) Update(_ context.Context, _ string, _ []byte, last uint64) (uint64, error) {
	*kv.now += time.Second
	return last + 1, nil
}

// TestDeadlineOfARenewal checks that a node renews all users with one write, and counts from when that was sent: the server may
// have begun to count as early as that.
func TestDeadlineOfARenewal(t *testing.T) {
	now, renewed := time.Minute, map[string]time.Duration{}
	h := New(nil, placement.New(slowKV{now: &now}), 6*time.Second).NewHolder(HolderOptions{
		ID: "a", Describe: func() placement.Node { return placement.Node{} },
		Clock:   func() time.Duration { return now },
		Renewed: func(user string, deadline time.Duration) { renewed[user] = deadline },
	})
	h.term, h.revision, h.held = 3, 7, map[string]*held{"ann": {}, "bob": {}}
	must.OK(t, h.Publish(t.Context()))
	want := time.Minute + h.fence()
	if h.deadline != want || renewed["ann"] != want || renewed["bob"] != want || h.revision != 8 || h.term != 3 {
		t.Errorf("the deadline is %v, and %v for the worker, want %v; revision %d, term %d", h.deadline, renewed, want, h.revision, h.term)
	}
}
