// Package natstest starts NATS servers for tests.
package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
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
