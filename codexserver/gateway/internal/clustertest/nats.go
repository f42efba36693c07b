// Package clustertest has the parts of a service for tests: NATS servers, buckets, holders of leases, certificates, and
// fronts that send what the test says.
package clustertest

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// Patience bounds each wait. Only a failing test reaches it.
const Patience = 2 * time.Minute

// Until waits for a condition.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// Await waits for what comes from a channel, or for its end.
func Await[T any](t testing.TB, what string, c <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(Patience):
		t.Fatal(what)
	}
	return got
}

// Bounded returns the context of a test, which ends after [Patience].
func Bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Start starts a server with these options, until the end of the test. Unless they say otherwise, it
// listens on a port of loopback, and keeps its streams in a folder of the test.
func Start(t testing.TB, o server.Options) *server.Server {
	t.Helper()
	o.NoSigs, o.NoLog = true, true
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	s := must.Get(server.NewServer(&o))(t)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(Patience) {
		t.Fatal("NATS does not start")
	}
	return s
}

// Connect connects to a server in this process, until the end of the test.
func Connect(t testing.TB, s *server.Server) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	conn := must.Get(nats.Connect("", nats.InProcessServer(s), nats.MaxReconnects(-1)))(t)
	t.Cleanup(conn.Close)
	return conn, must.Get(jetstream.New(conn))(t)
}

// Credentials writes a file with credentials of a new user of an account, until they expire, and returns the secret in them.
// Those with the zero time do not expire.
func Credentials(t testing.TB, file string, account nkeys.KeyPair, expires time.Time) (seed string) {
	t.Helper()
	user := must.Get(nkeys.CreateUser())(t)
	claims := jwt.NewUserClaims(must.Get(user.PublicKey())(t))
	if !expires.IsZero() {
		claims.Expires = expires.Unix()
	}
	secret := must.Get(user.Seed())(t)
	must.OK(t, os.WriteFile(file, must.Get(jwt.FormatUserConfig(must.Get(claims.Encode(account))(t), secret))(t),
		0o600))
	return string(secret)
}

// Embedded starts a server in this process, until the end of the test.
func Embedded(t testing.TB) *broker.Broker {
	t.Helper()
	b := must.Get(broker.Connect(broker.Options{Folder: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() { must.Check(t, b.Close()) })
	return b
}

// Buckets opens the buckets of a service, whose nodes last for a time without a renewal.
func Buckets(t testing.TB, b *broker.Broker, ttl time.Duration) (users jetstream.KeyValue, leases *lease.Leases) {
	t.Helper()
	users = must.Get(b.Open(t.Context(), &broker.Bucket{Name: lease.Bucket, Replicas: 1, MaxValue: lease.MaxValue}))(t)
	entries := must.Get(b.Open(t.Context(),
		&broker.Bucket{Name: placement.Bucket, TTL: ttl, Replicas: 1, MaxValue: placement.MaxValue}))(t)
	return users, lease.New(users, placement.New(entries), ttl)
}

// Hold returns a holder that has joined. Unless the options say otherwise, it has its id as its name. It is closed at the end
// of the test.
func Hold(t testing.TB, leases *lease.Leases, o lease.HolderOptions) *lease.Holder {
	t.Helper()
	if o.Describe == nil {
		o.Describe = func() placement.Node { return placement.Node{Name: o.ID, Address: o.ID + ":1"} }
	}
	if o.Lost == nil {
		o.Lost = func(string) {}
	}
	o.Metrics, o.Logger = metrics.New(), slog.New(slog.DiscardHandler)
	h := leases.NewHolder(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = h.Close(ctx) // fails where the test has closed the connection
	})
	must.OK(t, h.Join(t.Context()))
	return h
}
