package mcphttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

const (
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	ping  = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
)

// local is a handler that is called directly, since a synctest bubble cannot wait for the
// network.
type local struct {
	t       *testing.T
	handler *mcphttp.Handler
}

func openLocal(t *testing.T, own func(*codexserver.Principal) mcphttp.Service, change func(*mcphttp.Options)) *local {
	t.Helper()
	o := &mcphttp.Options{
		MaxSessions:  1000,
		Authenticate: func(*http.Request) (mcphttp.Principal, error) { return mcphttp.Principal{Name: "ann"}, nil },
	}
	if change != nil {
		change(o)
	}
	server := codexserver.New(echo, nil)
	h, err := mcphttp.New(func(ctx context.Context, name string) mcphttp.Service { return own(server.Principal(ctx, name)) }, o)
	must(t, err)
	return &local{t, h}
}

// do sends a request and returns the response.
func (l *local) do(method, session, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, r)
	return w
}

// begin begins a session and returns its id.
func (l *local) begin() string {
	l.t.Helper()
	w := l.do(http.MethodPost, "", hello)
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || id == "" || !strings.Contains(w.Body.String(), `"protocolVersion"`) {
		l.t.Fatalf("%d %s", w.Code, w.Body)
	}
	return id
}

func (l *local) close() {
	if err := l.handler.Close(); err != nil {
		l.t.Error(err)
	}
}

// itself returns a principal as its own service.
func itself(p *codexserver.Principal) mcphttp.Service { return p }

// TestIdleTimeout checks that a session ends when it was not used for the time, and not before.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLocal(t, itself, func(o *mcphttp.Options) { o.IdleTimeout = time.Hour })
		defer l.close()
		unused, used := l.begin(), l.begin()
		for _, step := range []struct {
			after            time.Duration
			status, sessions int
		}{
			{40 * time.Minute, http.StatusOK, 2},
			{59 * time.Minute, http.StatusOK, 1},
			{62 * time.Minute, http.StatusNotFound, 0},
		} {
			<-time.After(step.after)
			synctest.Wait()
			if w := l.do(http.MethodPost, used, ping); w.Code != step.status {
				t.Errorf("%d after %v, want %d: %s", w.Code, step.after, step.status, w.Body)
			}
			if n := l.handler.Load().Sessions; n != step.sessions {
				t.Errorf("%d sessions after %v, want %d", n, step.after, step.sessions)
			}
		}
		if w := l.do(http.MethodPost, unused, ping); w.Code != http.StatusNotFound {
			t.Errorf("unused: %d %s", w.Code, w.Body)
		}
	})
}

// worked is a service with work that no request waits for.
type worked struct {
	mcphttp.Service
	busy *atomic.Bool
}

func (w worked) Busy() bool { return w.busy.Load() }

// TestDrainWaitsForTheBackground checks that Drain waits for work for which no request waits.
func TestDrainWaitsForTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Bool
		l := openLocal(t, func(p *codexserver.Principal) mcphttp.Service { return worked{p, &busy} }, nil)
		defer l.close()
		l.begin()
		busy.Store(true)
		late, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := l.handler.Drain(late); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("work runs, and Drain returned %v", err)
		}
		time.AfterFunc(time.Hour, func() { busy.Store(false) })
		began := time.Now()
		if err := l.handler.Drain(t.Context()); err != nil || time.Since(began) < time.Hour {
			t.Errorf("Drain returned %v after %v", err, time.Since(began))
		}
	})
}
