package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/nats-io/nats.go/jetstream"
)

func bucket(t *testing.T, n *node) jetstream.KeyValue {
	t.Helper()
	js, err := jetstream.New(n.conn)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), lease.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

// TestStolen lets another process write the key of a lease, over and over. The node that had it stops
// its worker by its deadline at the latest, admits no request with a forged epoch, and no worker of
// another node runs at the same time as its own.
func TestStolen(t *testing.T) {
	for name, value := range map[string]string{
		"another node":             `{"node":"x","id":"x","epoch":9999}`,
		"a lower epoch":            `{"node":"a","id":"a","epoch":1}`,
		"a higher epoch":           `{"node":"a","id":"a","epoch":18446744073709551615}`,
		"no epoch":                 `{"node":"a","id":"a"}`,
		"an epoch below zero":      `{"node":"a","id":"a","epoch":-1}`,
		"another member":           `{"node":"a","id":"a","epoch":1,"user":"bob"}`,
		"a member twice":           `{"node":"a","id":"a","id":"x","epoch":1}`,
		"not JSON":                 "x",
		"nothing":                  "",
		"a value that is too long": `{"node":"` + strings.Repeat("x", lease.MaxValue) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			a, b := join(t, s, "a", ttl, nil), join(t, s, "b", ttl, nil)
			b.take(t, "bob") // epochs do not begin with 1
			first := a.take(t, "ann")
			kv := bucket(t, b)
			if _, err := kv.PutString(t.Context(), "ann", value); err != nil {
				t.Fatal(err)
			}
			select {
			case <-a.lost:
			case <-time.After(patience):
				t.Fatal("the node goes on")
			}
			for _, epoch := range []uint64{0, 1, first.Epoch, first.Epoch + 1, 9999, 1<<64 - 1} {
				if _, err := a.Hold(t.Context(), "ann", epoch); err == nil {
					t.Errorf("a request with the epoch %d is admitted", epoch)
				}
			}
			for deadline := time.Now().Add(patience); ; { // the forged one expires
				got, err := b.Take(t.Context(), "ann")
				if err == nil && got.ID == "b" {
					if got.Epoch <= first.Epoch {
						t.Errorf("the epoch %d follows %d", got.Epoch, first.Epoch)
					}
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("nobody gets the lease: %+v, %v", got, err)
				}
			}
			if a.Epoch("ann") != 0 {
				t.Error("both nodes hold the lease")
			}
		})
	}
}

// TestEpochRolledBack writes an older value of the same lease again, byte for byte. The epoch in it is
// that of the node, so the node keeps the lease; an epoch of an earlier lease ends it.
func TestEpochRolledBack(t *testing.T) {
	s := start(t)
	a, b := join(t, s, "a", ttl, nil), join(t, s, "b", ttl, nil)
	first := a.take(t, "ann")
	kv := bucket(t, b)
	old := ""
	for deadline := time.Now().Add(patience); old == ""; { // after a renewal the value has the epoch
		entry, err := kv.Get(t.Context(), "ann")
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound): // the machine was too slow for a renewal
			first = a.take(t, "ann")
		case err != nil:
			t.Fatal(err)
		case entry.Revision() > first.Epoch:
			old = string(entry.Value())
		}
		if time.Now().After(deadline) {
			t.Fatal("the lease is not renewed")
		}
	}
	for end := time.Now().Add(2 * ttl); time.Now().Before(end); <-time.After(ttl / 10) {
		if _, err := kv.PutString(t.Context(), "ann", old); err != nil {
			t.Fatal(err)
		}
		got := a.Epoch("ann")
		if got == 0 { // its own renewals may fail against so many: then it stops in time
			break
		}
		if got != first.Epoch {
			t.Fatalf("the epoch is %d, not %d", got, first.Epoch)
		}
	}
	if err := a.Release(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		got, err := b.Take(t.Context(), "ann")
		if err == nil && got.ID == "b" {
			if got.Epoch <= first.Epoch {
				t.Errorf("the epoch %d follows %d", got.Epoch, first.Epoch)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if _, err := kv.PutString(t.Context(), "ann", old); err != nil { // of the lease before
		t.Fatal(err)
	}
	select {
	case <-b.lost:
	case <-time.After(patience):
		t.Fatal("the node goes on with the epoch of another")
	}
}

// TestForgedKeys writes keys that are no users. Listing the leases goes on.
func TestForgedKeys(t *testing.T) {
	s := start(t)
	a := join(t, s, "a", 0, nil)
	want := a.take(t, "ann")
	for subject, value := range map[string]string{
		"a.b": "{}", "=": "x", "a/b": `{"node":"x"}`, "*": "{}", ">": "{}", "bob": "x", "_kv": `{"node":"x","id":"y","epoch":3}`, strings.Repeat("x", 300): "{}",
	} {
		if err := a.conn.Publish("$KV."+lease.Bucket+"."+subject, []byte(value)); err != nil {
			t.Logf("%q: %v", subject, err) // the client refuses it
		}
	}
	if err := a.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	all, err := a.leases.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, l := range all {
		found = found || l == want
	}
	if !found {
		t.Errorf("the lease of ann is not in %+v", all)
	}
	if got, err := a.leases.Get(t.Context(), "ann"); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, user := range []string{"bob", "a.b", "*", ">", "", "a b", strings.Repeat("x", 5000)} {
		if _, err := a.leases.Get(t.Context(), user); err == nil && user != "a.b" {
			t.Errorf("%q has a lease", user)
		}
	}
}

// TestFullBucket lets NATS have no room for leases. No user gets one, and the error says why; a lease
// that cannot be renewed is lost in time.
func TestFullBucket(t *testing.T) {
	s := start(t)
	a := join(t, s, "a", ttl, nil)
	a.take(t, "ann")
	js, err := jetstream.New(a.conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "KV_"+lease.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxBytes = 10
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var answer *jetstream.APIError
	if got, err := a.Take(ctx, "bob"); !errors.As(err, &answer) || !strings.Contains(err.Error(), "bob") {
		t.Errorf("%+v, %v", got, err)
	}
	select {
	case <-a.lost:
	case <-ctx.Done():
		t.Error("the lease of ann is neither renewed nor lost")
	}
}

// TestSlowNATS lets NATS not answer: the call to take a lease ends with its context, and a lease that
// is held ends by its deadline.
func TestSlowNATS(t *testing.T) {
	s := start(t)
	a := join(t, s, "a", ttl, nil)
	kv := bucket(t, a)
	slow := &silent{KeyValue: kv, on: make(chan struct{})}
	lost := make(chan string, 1)
	h := lease.New(slow, ttl).NewHolder(lease.HolderOptions{Node: "b", ID: "b", Lost: func(user string) { lost <- user }, Logger: slog.New(slog.DiscardHandler)})
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = h.Close(ctx)
	}()
	if _, err := h.Take(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	close(slow.on)
	ctx, cancel := context.WithTimeout(t.Context(), ttl/10)
	defer cancel()
	if _, err := h.Take(ctx, "bob"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("taking: %v", err)
	}
	select {
	case <-lost:
	case <-time.After(patience):
		t.Error("the lease is not lost")
	}
}

// silent is a bucket that does not answer from a time on.
type silent struct {
	jetstream.KeyValue
	on chan struct{}
}

func (s *silent) wait(ctx context.Context) error {
	select {
	case <-s.on:
		<-ctx.Done()
		return ctx.Err()
	default:
		return nil
	}
}

func (s *silent) Create(ctx context.Context, key string, value []byte, o ...jetstream.KVCreateOpt) (uint64, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	return s.KeyValue.Create(ctx, key, value, o...)
}

func (s *silent) Update(ctx context.Context, key string, value []byte, last uint64) (uint64, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	return s.KeyValue.Update(ctx, key, value, last)
}

func (s *silent) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.KeyValue.Get(ctx, key)
}
