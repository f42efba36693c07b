package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/certtest"
)

// linked returns the settings of a process of a service in a table: a node listens on loopback.
func linked(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "link.pem")
	if err := os.WriteFile(file, certificate(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("{address = '127.0.0.1:0', listen = '127.0.0.1:0', ca = %[1]q, cert = %[1]q, key = %[1]q}", file)
}

// certificate returns a certificate of servers on loopback, of the clients of NATS, and of fronts and nodes, and its
// key, in PEM.
func certificate(t *testing.T) []byte {
	t.Helper()
	cert, key := certtest.New(t, "gateway.example.com")
	return append(cert, key...)
}
