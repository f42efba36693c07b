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

// TestRelay relays lines in both directions until the input ends.
func TestRelay(t *testing.T) {
	p := newPlace(t)
	c := p.must("/f")
	var out strings.Builder
	must.Check(t, c.Relay(t.Context(), strings.NewReader("a\nb\n"), &out))
	if got, want := out.String(), strings.Repeat(from(c.PID(), "/f")+"\n", 2); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestRelayLeft ends the input while a request is open. The server lives.
func TestRelayLeft(t *testing.T) {
	p := newPlace(t)
	c := p.must("/f")
	var out strings.Builder
	must.Check(t, c.Relay(t.Context(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}`+"\n"), &out))
	_, answer, _ := strings.Cut(out.String(), "\n") // after that of the test's server, which has no id
	if !strings.Contains(answer, `"id":1,"error"`) || !strings.Contains(answer, "the client left before") || strings.Contains(answer, "has ended") {
		t.Errorf("answer %s", answer)
	}
	must.Equal(t, "the server", c.PID(), p.must("/f").PID())
}

// TestRelayServerKilled kills the server while requests are open.
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
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","id":"two","method":"y"}`, `{"jsonrpc":"2.0","id":3,"method":"z"}`, `{"jsonrpc":"2.0","method":"n"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
	} {
		io.WriteString(client, line+"\n")
	}
	lines := bufio.NewScanner(answers)
	for range 5 { // the answers of the test's server have no id
		lines.Scan()
	}
	must.OK(t, syscall.Kill(c.PID(), syscall.SIGKILL))
	var got []string
	for lines.Scan() {
		id, text, _ := strings.Cut(strings.TrimPrefix(lines.Text(), `{"jsonrpc":"2.0","id":`), ",")
		if !strings.Contains(text, "has ended") {
			t.Errorf("answer %s", lines.Text())
		}
		got = append(got, id)
	}
	if strings.Join(got, " ") != `"two" 3` && strings.Join(got, " ") != `3 "two"` {
		t.Errorf("answers to %q, want those to two and 3", got)
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
