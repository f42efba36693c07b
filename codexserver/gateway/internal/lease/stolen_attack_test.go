package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats.go/jetstream"
)

// TestStolen lets another process write the key of a user. The node that had the user stops the worker, and
// admits no request with a forged epoch. Another node gets the user, unless a later version may have written the value.
func TestStolen(t *testing.T) {
	t.Parallel()
	s := start(t)
	b, a := join(t, s, "b", forever, nil), join(t, s, "a", forever, nil)
	b.take(t, "bob")
	for name, tt := range map[string]struct {
		value string // A stands for the term of a, B for that of b
		read  bool   // by nodes
	}{
		"a process that is not there": {`{"node":"x","id":"x","term":9999}`, true},
		"the same process and term":   {`{"node":"a","id":"a","term":A}`, true},
		"the process that asks":       {`{"node":"b","id":"b","term":B}`, true},
		"an earlier term":             {`{"node":"a","id":"a","term":1}`, true},
		"a later term of a process":   {`{"node":"a","id":"a","term":18446744073709551615}`, false},
		"no term":                     {`{"node":"a","id":"a"}`, false},
		"no process":                  {`{"node":"a","term":7}`, false},
		"an epoch":                    {`{"node":"x","id":"x","term":7,"epoch":9}`, false},
		"an address":                  {`{"node":"x","id":"x","term":7,"address":"x:1"}`, false},
		"another member":              {`{"node":"a","id":"a","term":1,"user":"bob"}`, false},
		"not JSON":                    {"x", false},
		"the key is removed":          {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			user := strings.ReplaceAll(name, " ", "-")
			first := a.take(t, user)
			var err error
			if tt.value == "" {
				err = b.users.Delete(t.Context(), user)
			} else {
				_, err = b.users.PutString(t.Context(), user, strings.NewReplacer("A", fmt.Sprint(first.Term), "B", fmt.Sprint(must.Get(b.leases.Nodes.Get(t.Context(), "b"))(t).Term)).Replace(tt.value))
			}
			must.OK(t, err)
			clustertest.Await(t, "the node goes on", a.lost)
			for _, epoch := range []uint64{0, 1, first.Epoch, first.Epoch + 1, 9999, 1<<64 - 1} {
				if a.admits(user, epoch) {
					t.Errorf("a request with the epoch %d is admitted", epoch)
				}
			}
			if !tt.read {
				if got, err := b.Take(t.Context(), user); err == nil {
					t.Errorf("taken: %+v", got)
				}
				if err := b.users.Delete(t.Context(), user); err != nil { // as the error says
					t.Fatal(err)
				}
			}
			var got lease.Lease
			clustertest.Until(t, "nobody gets the lease", func() bool { got, err = b.Take(t.Context(), user); return err == nil && got.ID == "b" })
			if got.Epoch <= first.Epoch || a.Epoch(user) != 0 {
				t.Errorf("the epoch %d follows %d; or both nodes hold the lease", got.Epoch, first.Epoch)
			}
			if b.Epoch("bob") == 0 || len(b.lost) > 0 {
				t.Error("the other user is lost")
			}
		})
	}
}

// TestEntryStolen lets another process write the entry of a node. The node stops all workers by its deadline at the
// latest; before that no other node gets its users. An older value of the same term costs it nothing.
func TestEntryStolen(t *testing.T) {
	for name, tt := range map[string]struct {
		value string // A stands for the term of a
		keeps bool
	}{
		"the same term":        {`{"name":"a","term":A}`, true},
		"another term":         {`{"name":"a","term":B}`, false},
		"not JSON":             {"x", false},
		"the entry is removed": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			b, a := join(t, s, "b", ttl, nil), join(t, s, "a", ttl, nil)
			first := a.take(t, "ann")
			var err error
			if tt.value == "" {
				err = b.nodes.Delete(t.Context(), "a")
			} else {
				_, err = b.nodes.PutString(t.Context(), "a", strings.NewReplacer("A", fmt.Sprint(first.Term), "B", fmt.Sprint(first.Term-1)).Replace(tt.value))
			}
			must.OK(t, err)
			if tt.keeps {
				time.Sleep(2 * ttl)
				if got := a.Epoch("ann"); got != first.Epoch {
					t.Errorf("the epoch is %d, not %d", got, first.Epoch)
				}
				return
			}
			clustertest.Await(t, "the node goes on", a.lost)
			var again lease.Lease
			clustertest.Until(t, "the node does not join again", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), ttl)
				defer cancel()
				again, err = a.Take(ctx, "bob")
				return err == nil
			})
			if again.Term <= first.Term {
				t.Errorf("the term %d follows %d", again.Term, first.Term)
			}
			if got := b.take(t, "ann"); got.ID != "b" || got.Epoch <= first.Epoch {
				t.Errorf("the lease %+v follows the epoch %d", got, first.Epoch)
			}
		})
	}
}

// TestBehind asks a server that lags behind whether the process of a user has an entry. The other node does not get the user.
func TestBehind(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := join(t, s, "a", long, nil), join(t, s, "b", long, nil)
	first := a.take(t, "ann")
	h := holder(t, "c", b.users, meddled{KeyValue: b.nodes, get: jetstream.ErrKeyNotFound})
	if got, err := h.Take(t.Context(), "ann"); err == nil {
		t.Errorf("taken: %+v", got)
	}
	if got := b.take(t, "ann"); got != first {
		t.Errorf("the lease is %+v, want %+v", got, first)
	}
}

// TestLostAnswer loses the answer to the request that takes a user. The node that does not know that it has the user gives
// it back, so that another one gets it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := join(t, s, "b", long, nil)
	lost := errors.New("the answer is lost")
	h := holder(t, "c", meddled{KeyValue: b.users, create: func(create func() (uint64, error)) (uint64, error) {
		_, _ = create()
		return 0, lost
	}}, b.nodes)
	if _, err := h.Take(t.Context(), "ann"); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	if got := b.take(t, "ann"); got.ID != "c" {
		t.Fatalf("the lease is %+v", got)
	}
	clustertest.Until(t, "the other node never gets the user", func() bool { return b.take(t, "ann").ID == "b" })
	if len(h.Users()) > 0 {
		t.Errorf("the node has %q", h.Users())
	}
}

// TestForgedKeys writes keys that are no users. Listing the leases goes on.
func TestForgedKeys(t *testing.T) {
	a := join(t, start(t), "a", forever, nil)
	want := a.take(t, "ann")
	for key, value := range map[string]string{
		"a.b": "{}", "a/b": `{"node":"x"}`, "bob": "x", "_kv": `{"node":"x","id":"y","term":3}`, "cat": fmt.Sprintf(`{"node":"a","id":"a","term":%d}`, want.Term+1),
	} {
		must.Get(a.users.PutString(t.Context(), key, value))(t)
	}
	if all, err := a.leases.All(t.Context()); err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("%+v, %v, want the lease of ann", all, err)
	}
	if got, err := a.leases.Get(t.Context(), "ann"); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, user := range []string{"bob", "*", ">", "", "a b"} {
		if _, err := a.leases.Get(t.Context(), user); err == nil {
			t.Errorf("%q has a lease", user)
		}
	}
}
