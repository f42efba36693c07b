// Package natstest starts NATS servers for tests.
package natstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
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

// Routed starts three servers that form a cluster with JetStream, and keep their streams in folders of the test.
func Routed(t testing.TB) (all []*server.Server) {
	t.Helper()
	var routes []*url.URL
	var ports []int
	var listeners []net.Listener
	for len(ports) < 3 { // of those that no system gives to a connection, which could take one before NATS does
		port := 10_000 + rand.IntN(20_000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		ports = append(ports, port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
		listeners = append(listeners, l) // all ports are different
	}
	for i, port := range ports {
		if err := listeners[i].Close(); err != nil {
			t.Fatal(err)
		}
		all = append(all, Start(t, server.Options{
			ServerName: fmt.Sprint("n", i), JetStream: true,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: port}, Routes: routes,
		}))
	}
	return all
}

// Cluster is Routed, and waits until JetStream answers.
func Cluster(t testing.TB) []*server.Server {
	t.Helper()
	all := Routed(t)
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
