//go:build linux || darwin

package shared_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRelay relays lines in both directions until the input ends. The server lives.
func TestRelay(t *testing.T) {
	p := newPlace(t)
	c := p.must("/f")
	var out strings.Builder
	must.Check(t, c.Relay(t.Context(), strings.NewReader("a\nb\n"), &out))
	if got, want := out.String(), strings.Repeat(from(c.PID(), "/f")+"\n", 2); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	must.Equal(t, "the server", c.PID(), p.must("/f").PID())
}

// TestRelayServerKilled kills the server while the client is connected, which gets whole lines only.
func TestRelayServerKilled(t *testing.T) {
	p := newPlace(t)
	c := p.must("/f")
	in, client := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- c.Relay(t.Context(), in, out)
		out.Close()
	}()
	io.WriteString(client, "a\n")
	lines := bufio.NewScanner(answers)
	lines.Scan()
	must.OK(t, syscall.Kill(c.PID(), syscall.SIGKILL))
	if lines.Scan() {
		t.Errorf("the client gets %q", lines.Text())
	}
	must.Fail(t, "Relay", "has ended", <-ended)
	client.Close()
}

// TestRelayInterrupted ends the context of a relay whose server does not answer.
func TestRelayInterrupted(t *testing.T) {
	t.Parallel() // it waits
	p := newPlace(t)
	c := p.must(t.TempDir())
	say(t, c, "work") // until a file exists
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, client := io.Pipe()
	defer client.Close()
	must.Check(t, c.Relay(ctx, in, io.Discard))
	os.Remove("done")
}
