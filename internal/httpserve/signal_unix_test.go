//go:build unix

package httpserve

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestSignal sends a signal as soon as the server says that it listens. The server tells others that
// it drains from the beginning on, and closes the backend afterwards.
func TestSignal(t *testing.T) {
	b := &work{}
	s := &Server{
		Flags: &Flags{Listen: "127.0.0.1:0"}, Mux: http.NewServeMux(), Backend: b, Drain: time.Minute,
		Signals: []os.Signal{syscall.SIGUSR1}, Logger: slog.New(slog.DiscardHandler),
	}
	s.Ready = func() { must.Check(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1)) }
	b.during = func() string {
		answer := must.Get(http.Get(s.URL("/readyz")))(t)
		defer answer.Body.Close()
		return answer.Status + ": " + string(must.Get(io.ReadAll(answer.Body))(t))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a signal before it is heard is lost
	defer cancel()
	must.Check(t, s.Serve(ctx))
	if want := []string{"503 Service Unavailable: draining\n", "closed"}; !slices.Equal(b.log, want) {
		t.Errorf("%q, want %q", b.log, want)
	}
}
