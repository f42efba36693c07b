// Package natstest starts NATS servers for tests.
package natstest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// patience bounds the start of a server. Only a failing test reaches it.
const patience = time.Minute

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
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("NATS does not start")
	}
	return s
}

// Cluster starts three servers that form a cluster with JetStream.
func Cluster(t testing.TB) []*server.Server {
	t.Helper()
	var routes []*url.URL
	var listeners []net.Listener
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
	}
	var all []*server.Server
	for i, l := range listeners {
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		all = append(all, Start(t, server.Options{
			ServerName: fmt.Sprint("n", i), JetStream: true,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: port}, Routes: routes,
		}))
	}
	conn, err := nats.Connect("", nats.InProcessServer(all[0]), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := js.AccountInfo(ctx)
		cancel()
		if err == nil {
			return all
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}
