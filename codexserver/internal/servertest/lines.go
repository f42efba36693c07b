package servertest

import (
	"context"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Lines serves a client that writes and reads the lines itself, and returns the client's end of
// the wire. The end of the test closes it.
func Lines(t testing.TB, s Server) jsonrpc.Transport {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), theirs) }()
	t.Cleanup(func() {
		ours.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return ours
}

// Read returns the next answer on a wire, which must contain a text.
func Read(t testing.TB, end jsonrpc.Transport, want string) string {
	t.Helper()
	for {
		line, err := end.Read(t.Context())
		must.OK(t, err)
		if !strings.Contains(string(line), `"id":`) || strings.Contains(string(line), `"method":`) {
			continue
		}
		if !strings.Contains(string(line), want) {
			t.Fatalf("%s: not %s", line, want)
		}
		return string(line)
	}
}
