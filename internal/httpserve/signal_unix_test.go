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

// asked is a backend that asks its server whether it is ready, while it drains.
type asked struct {
	url string
	log []string
}

// Drain implements [Backend].
func (b *asked) Drain(context.Context) error {
	answer, err := http.Get(b.url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	b.log = append(b.log, answer.Status+": "+string(text))
	return err
}

// Close implements [Backend].
func (b *asked) Close() error {
	b.log = append(b.log, "closed")
	return nil
}

// TestSignal sends a signal as soon as the server says that it listens. The server tells others that
// it drains from the beginning on, and closes the backend afterwards.
func TestSignal(t *testing.T) {
	b := &asked{}
	s := &Server{
		Flags: &Flags{Listen: "127.0.0.1:0"}, Mux: http.NewServeMux(), Backend: b, Drain: time.Minute,
		Signals: []os.Signal{syscall.SIGUSR1}, Logger: slog.New(slog.DiscardHandler),
	}
	s.Ready = func() {
		b.url = s.URL("/readyz")
		must.Check(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a signal before it is heard is lost
	defer cancel()
	must.Check(t, s.Serve(ctx))
	if want := []string{"503 Service Unavailable: draining\n", "closed"}; !slices.Equal(b.log, want) {
		t.Errorf("%q, want %q", b.log, want)
	}
}
