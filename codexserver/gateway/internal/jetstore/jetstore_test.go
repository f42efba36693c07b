package jetstore_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestStore keeps the promises of a store, on one server.
func TestStore(t *testing.T) {
	js := connect(t, one(t))
	n := 0
	workertest.Run(t, func(t *testing.T) workertest.Open {
		n++
		user := "ann-" + string(rune('a'+n))
		return func(epoch uint64) (worker.Store, error) {
			return jetstore.Open(t.Context(), js, jetstore.Options{User: user, Epoch: epoch})
		}
	})
}

func one(t testing.TB) *server.Server {
	t.Helper()
	return clustertest.Start(t, server.Options{DontListen: true, NoSystemAccount: true, JetStream: true})
}

func connect(t testing.TB, s *server.Server) jetstream.JetStream {
	t.Helper()
	_, js := clustertest.Connect(t, s)
	return js
}

func open(t testing.TB, js jetstream.JetStream, o jetstore.Options) *jetstore.Store {
	t.Helper()
	o.User = "ann"
	s := must.Get(jetstore.Open(t.Context(), js, o))(t)
	return s
}

func whole(t *testing.T, s worker.Store, name string) []byte {
	t.Helper()
	var all []byte
	for {
		data := must.Get(s.Read(t.Context(), name, int64(len(all)), worker.MaxData))(t)
		if len(data) == 0 {
			return all
		}
		all = append(all, data...)
	}
}

// TestLarge puts records that need several messages under the longest name, and continues them. Nothing of the old ones stays.
func TestLarge(t *testing.T) {
	js := connect(t, one(t))
	s := open(t, js, jetstore.Options{Epoch: 1})
	name := strings.Repeat("x", 255) + "/" + strings.Repeat("y.z-", 63)
	var last []byte
	for i, size := range []int{1<<20 + 1, 600 << 10, 10, 700 << 10} {
		last = make([]byte, size)
		rand.NewChaCha8([32]byte{byte(i)}).Read(last)
		must.OK(t, s.Put(t.Context(), name, last))
		if got := whole(t, s, name); !bytes.Equal(got, last) {
			t.Errorf("%d bytes, want %d", len(got), len(last))
		}
	}
	for i := range 3 {
		must.OK(t, s.Append(t.Context(), name, int64(len(last)), []byte{byte(i)}))
		last = append(last, byte(i))
	}
	next := open(t, js, jetstore.Options{Epoch: 2})
	for _, at := range []int64{0, 1, 512<<10 - 1, 512 << 10, 700<<10 - 1, 700 << 10, 700<<10 + 2} {
		got, err := next.Read(t.Context(), name, at, 9)
		if err != nil || !bytes.Equal(got, last[at:min(int(at)+9, len(last))]) {
			t.Errorf("9 bytes at %d: %x, %v", at, got, err)
		}
	}
	must.OK(t, next.Delete(t.Context(), name))
	if n := stream(t, js).CachedInfo().State.Msgs; n != 2 { // the epoch, and that the name is gone
		t.Errorf("the stream has %d messages", n)
	}
}

func stream(t *testing.T, js jetstream.JetStream) jetstream.Stream {
	t.Helper()
	s := must.Get(js.Stream(t.Context(), "codexmcp_state_ann"))(t)
	return s
}

// TestFull fills a server. Writes fail with the reason, and what is there stays.
func TestFull(t *testing.T) {
	s := open(t, connect(t, clustertest.Start(t, server.Options{DontListen: true, NoSystemAccount: true, JetStream: true, JetStreamMaxStore: 1 << 20})), jetstore.Options{Epoch: 1})
	var size int64
	block := make([]byte, 100<<10)
	for {
		err := s.Append(t.Context(), "log", size, block)
		if errors.Is(err, worker.ErrFull) {
			break
		}
		must.OK(t, err)
		size += int64(len(block))
	}
	if err := s.Put(t.Context(), "record", make([]byte, 3<<20)); !errors.Is(err, worker.ErrFull) {
		t.Errorf("a large record: %v", err)
	}
	if got := whole(t, s, "log"); int64(len(got)) != size || size < 800<<10 {
		t.Errorf("%d bytes, want %d", len(got), size)
	}
	if _, err := s.Read(t.Context(), "record", 0, 1); !errors.Is(err, worker.ErrNotFound) {
		t.Errorf("the record: %v", err)
	}
}

// TestLostAnswer loses the answer to each write. It is written once, and counts.
func TestLostAnswer(t *testing.T) {
	js := connect(t, one(t))
	var last *nats.Msg
	s := open(t, publisher{js, func(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
		ack, err := js.PublishMsg(ctx, m, options...)
		if err == nil && last != m { // the first answer to each message
			last = m
			return nil, context.DeadlineExceeded
		}
		return ack, err
	}}, jetstore.Options{Epoch: 1})
	for i, part := range []string{"a", "b", "c"} {
		must.OK(t, s.Append(t.Context(), "log", int64(i), []byte(part)))
	}
	if got := whole(t, open(t, js, jetstore.Options{Epoch: 2}), "log"); string(got) != "abc" {
		t.Errorf("the log is %q", got)
	}
	if err := s.Append(t.Context(), "log", 3, []byte("d")); !errors.Is(err, worker.ErrFenced) {
		t.Errorf("after another writer: %v", err)
	}
}

// publisher is JetStream that answers a message in its own way.
type publisher struct {
	jetstream.JetStream
	publish func(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error)
}

func (p publisher) PublishMsg(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	return p.publish(ctx, m, options...)
}
