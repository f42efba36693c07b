package broker_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

func connect(t *testing.T, o broker.Options) *broker.Broker {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	b := must.Get(broker.Connect(o))(t)
	t.Cleanup(func() {
		if err := b.Close(); err != nil && !errors.Is(err, os.ErrClosed) { // a test has closed it
			t.Error(err)
		}
	})
	return b
}

// TestFolder checks that one process at a time uses a folder, that others cannot read it, and that
// the next process finds the streams of the last one.
func TestFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "in", "nats")
	must.OK(t, os.MkdirAll(folder, 0o755))
	b := connect(t, broker.Options{Folder: folder})
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	if other, err := broker.Connect(broker.Options{Folder: folder, Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "is running") {
		t.Errorf("another process with the folder: %v, %v", other, err)
	}
	file := filepath.Join(folder, "lock")
	if other, err := broker.Connect(broker.Options{Folder: file, Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "start the NATS server of this process") {
		t.Errorf("a file as the folder: %v, %v", other, err)
	}
	must.Get(bucket(t, b, &broker.Bucket{Name: "state"}).PutString(t.Context(), "ann", "kept"))(t)
	must.OK(t, b.Close())
	again := bucket(t, connect(t, broker.Options{Folder: folder}), &broker.Bucket{Name: "state"})
	if got, err := again.Get(t.Context(), "ann"); err != nil || string(got.Value()) != "kept" {
		t.Errorf("what was kept: %v, %v", got, err)
	}
}

func bucket(t *testing.T, b *broker.Broker, o *broker.Bucket) jetstream.KeyValue {
	t.Helper()
	return must.Get(b.Open(clustertest.Bounded(t), o))(t)
}

// TestNobodyElse checks that the server of this process has no socket, neither one that listens nor a connection: a
// worker can inherit none, and there is no port or abstract name to find.
func TestNobodyElse(t *testing.T) {
	sockets := func() map[string]bool {
		found := map[string]bool{}
		paths := must.Get(filepath.Glob("/proc/self/fd/*"))(t)
		for _, path := range paths {
			if to, err := os.Readlink(path); err == nil && strings.HasPrefix(to, "socket:") {
				found[to] = true
			}
		}
		return found
	}
	before := sockets()
	b := connect(t, broker.Options{Folder: t.TempDir()})
	bucket(t, b, &broker.Bucket{Name: "x"})
	for s := range sockets() {
		if !before[s] {
			t.Errorf("the process has the socket %s", s)
		}
	}
}

// TestOpen checks that a bucket is opened again as it is, and refused with another time or other replicas. One that was removed, as an operator
// does to change its time, begins with higher numbers than it had: those of leases are epochs.
func TestOpen(t *testing.T) {
	b := connect(t, broker.Options{Folder: t.TempDir()})
	o := broker.Bucket{Name: "leases", TTL: time.Minute, MaxValue: 1024}
	first := must.Get(bucket(t, b, &o).Create(t.Context(), "ann", []byte("a")))(t)
	if _, err := bucket(t, b, &o).Put(t.Context(), "long", make([]byte, o.MaxValue+1)); err == nil {
		t.Error("a value that is too long is kept")
	}
	ctx := clustertest.Bounded(t)
	if o.Replicas != 1 {
		t.Errorf("a server alone has %d replicas", o.Replicas)
	}
	for want, other := range map[string]broker.Bucket{
		"nats.lease must be the same":                                        {Name: o.Name, TTL: time.Minute - 1},
		"stored with 1 replicas, not with 3: nats.replicas must be the same": {Name: o.Name, TTL: o.TTL, Replicas: 3},
	} {
		if _, err := b.Open(ctx, &other); err == nil || !strings.Contains(err.Error(), want) || ctx.Err() != nil {
			t.Errorf("%v, want %q", err, want)
		}
	}
	must.OK(t, b.Stream.DeleteKeyValue(t.Context(), o.Name))
	<-time.After(20 * time.Millisecond) // an operator is not faster, and numbers begin with the time
	if again, err := bucket(t, b, &o).Create(t.Context(), "ann", []byte("a")); err != nil || again <= first {
		t.Errorf("the number %d follows %d, %v", again, first, err)
	}
}

// TestCutOff checks that a process notices that it has no NATS server, and goes on when there is one again.
func TestCutOff(t *testing.T) {
	o := server.Options{JetStream: true, StoreDir: t.TempDir()}
	s := clustertest.Start(t, o)
	b := connect(t, broker.Options{URL: s.ClientURL()})
	must.Check(t, b.Check())
	o.Port = s.Addr().(*net.TCPAddr).Port
	s.Shutdown()
	s.WaitForShutdown()
	clustertest.Until(t, "the process does not notice", func() bool { return b.Check() != nil })
	clustertest.Start(t, o)
	clustertest.Until(t, "the process does not go on", func() bool { return b.Check() == nil })
}

// TestOpenWaits checks that a bucket is opened when NATS can do it, and not later than its context.
func TestOpenWaits(t *testing.T) {
	s := clustertest.Start(t, server.Options{})
	b := connect(t, broker.Options{URL: s.ClientURL(), Name: "test"})
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Open(short, &broker.Bucket{Name: "leases", Replicas: 1}); err == nil || short.Err() == nil {
		t.Errorf("without JetStream: %v", err)
	}
	time.AfterFunc(300*time.Millisecond, func() { // it tries in vain before
		must.Check(t, s.EnableJetStream(&server.JetStreamConfig{StoreDir: t.TempDir()}))
	})
	bucket(t, b, &broker.Bucket{Name: "leases", Replicas: 1})
}
