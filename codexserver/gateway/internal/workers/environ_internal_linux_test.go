package workers

import (
	"slices"
	"testing"
)

// TestEnviron checks what a worker does not learn of the user and the unit that run the server.
func TestEnviron(t *testing.T) {
	got := environ([]string{"PATH=/bin", "CODEX_HOME=/server", "SSH_AUTH_SOCK=/agent", "NATS_PASSWORD=x", "NOTIFY_SOCKET=/notify", "WATCHDOG_PID=1", "WATCHDOG_USEC=2"}, "/own")
	if want := []string{"PATH=/bin", "CODEX_HOME=/own"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
