package node

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/google/go-cmp/cmp"
)

// TestAway checks which users who were given away still count, and which are forgotten.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Node{server: link.NewServer(handler{}, slog.New(slog.DiscardHandler))}
		s := newSpreading(n)
		s.lease = func(_ context.Context, user string) (lease.Lease, error) {
			id, has := map[string]string{"back": n.server.ID(), "moved": "b"}[user]
			if !has {
				return lease.Lease{}, lease.ErrFree
			}
			return lease.Lease{ID: id}, nil
		}
		s.given["old"] = time.Now()
		<-time.After(spreadMemory)
		for _, user := range []string{"back", "moved", "waits"} {
			s.given[user] = time.Now()
		}
		check := func(when string, want int, left ...string) {
			t.Helper()
			if got := s.away(t.Context()); got != want {
				t.Errorf("%s: %d users are away, want %d", when, got, want)
			}
			if diff := cmp.Diff(left, slices.Sorted(maps.Keys(s.given))); diff != "" {
				t.Errorf("%s: the users (-want +got):\n%s", when, diff)
			}
		}
		check("at first", 2, "back", "old", "waits")
		<-time.After(time.Second)
		check("after a while", 1, "back", "waits")
		<-time.After(spreadMemory)
		check("later", 0)
	})
}
