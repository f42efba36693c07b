package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// behind serves h as the worker of a principal behind a pool.
func behind(t *testing.T, who mcphttp.Principal, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l := must.Get(net.Listen("unix", socket))(t)
	server := &http.Server{Handler: h}
	serving := make(chan error, 1)
	go func() { serving <- server.Serve(l) }()
	p := newPool(Options{
		HTTP: settings.HTTP{Principals: map[string]settings.Principal{who.Name: {}}}, Challenge: `Bearer realm="here"`, Metrics: metrics.New(), Logger: slog.New(slog.DiscardHandler),
	})
	p.o.Settings.Metadata = "https://here.example/metadata"
	w := p.newWorker(func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", socket) })
	p.start = func(context.Context, string) (*process, error) { return w, nil }
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.Serve(w, r, who) }))
	t.Cleanup(func() {
		front.Close()
		w.transport.CloseIdleConnections()
		server.Close()
		<-serving
	})
	return front
}

// TestHeaders checks that the worker gets the principal of a request from the pool only.
func TestHeaders(t *testing.T) {
	got := make(chan *http.Request, 1)
	front := behind(t, mcphttp.Principal{Name: "ann", Scopes: []mcphttp.Scope{mcphttp.ScopeRead}}, func(_ http.ResponseWriter, r *http.Request) { got <- r })
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/mcp?a=b;c", strings.NewReader("body")))(t)
	for name, value := range map[string]string{
		"Authorization": "Bearer secret", "Cookie": "secret", "Origin": "http://evil.example", "Codex-Mcp-Principal": "bob", "Codex-Mcp-Scopes": "codex:approve", "Codex-Mcp-More": "x",
		"Connection": "Codex-Mcp-Principal, Mcp-Method, close", "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Port": "1", "Forwarded": "for=192.0.2.1", "X-Real-Ip": "192.0.2.1",
		"Mcp-Name": "kept", "Mcp-Session-Id": "kept", "Last-Event-Id": "kept", "Traceparent": "kept", "Idempotency-Key": "1",
	} {
		r.Header.Set(name, value)
	}
	r.Host = "evil.example"
	answer := must.Get(http.DefaultClient.Do(r))(t)
	answer.Body.Close()
	in := <-got
	have := map[string]string{"Host": in.Host}
	for name := range in.Header {
		if name != "Accept-Encoding" && name != "User-Agent" && name != "Content-Length" {
			have[name] = strings.Join(in.Header[name], ",")
		}
	}
	want := map[string]string{
		"Host": "localhost", "Codex-Mcp-Principal": "ann", "Codex-Mcp-Scopes": "codex:read",
		"Mcp-Name": "kept", "Mcp-Session-Id": "kept", "Last-Event-Id": "kept", "Traceparent": "kept",
	}
	must.Equal(t, "the worker received", want, have)
	l := &worker.Link{Settings: worker.Settings{Principal: "ann"}}
	must.Equal(t, "the principal at the worker", mcphttp.Principal{Name: "ann", Scopes: []mcphttp.Scope{mcphttp.ScopeRead}}, must.Get(l.Authenticate(in))(t))
}

// TestOnce checks that a request is sent only once, and that its client learns that it may have had an effect.
func TestOnce(t *testing.T) {
	n := make(chan struct{}, 10)
	front := behind(t, mcphttp.Principal{Name: "ann"}, func(w http.ResponseWriter, _ *http.Request) {
		n <- struct{}{}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		r := must.Get(http.NewRequestWithContext(t.Context(), method, front.URL, nil))(t)
		r.Header.Set("Idempotency-Key", "1")
		answer := must.Get(http.DefaultClient.Do(r))(t)
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadGateway || string(text) != UnansweredText+"\n" || len(n) != 1 {
			t.Errorf("%s: %s %s, and the worker had %d requests", method, answer.Status, text, len(n))
		}
		<-n
	}
}

// post sends a request, and reads its answer to the end.
func post(t *testing.T, front *httptest.Server) *http.Response {
	t.Helper()
	answer := must.Get(http.DefaultTransport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodPost, front.URL, nil)))(t)
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Error(err)
	}
	return answer
}

// TestAnswers checks that a worker cannot redirect clients by a header or a status.
func TestAnswers(t *testing.T) {
	for status, want := range map[int]int{200: 200, 204: 204, 303: 502, 401: 502, 403: 403, 407: 502, 503: 503} {
		front := behind(t, mcphttp.Principal{Name: "ann"}, func(w http.ResponseWriter, _ *http.Request) {
			for name, value := range map[string]string{
				"Trailer": "Late", http.TrailerPrefix + "Later": "x", "Location": "http://evil.example", "Set-Cookie": "a=b", "Access-Control-Allow-Origin": "*", "Refresh": "0", "Alt-Svc": "evil", "Link": "evil",
				"Mcp-Session-Id": "kept", "Content-Type": "text/event-stream", "Retry-After": "5", "Cache-Control": "no-store",
			} {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			if status == 200 {
				_, _ = io.WriteString(w, strings.Repeat("x", 10000)) // in chunks
			}
		})
		answer := post(t, front)
		if len(answer.Trailer) > 0 {
			t.Errorf("trailers: %v", answer.Trailer)
		}
		answer.Header.Del("Date")
		answer.Header.Del("Content-Length")
		have := map[string]string{}
		for name := range answer.Header {
			have[name] = strings.Join(answer.Header[name], ",")
		}
		headers := map[string]string{"Mcp-Session-Id": "kept", "Content-Type": "text/event-stream", "Retry-After": "5", "Cache-Control": "no-store"}
		if want == 502 {
			headers = map[string]string{"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
		}
		must.Equal(t, fmt.Sprint("the status of ", status), want, answer.StatusCode)
		must.Equal(t, fmt.Sprint("the headers of ", status), headers, have)
	}
}

// TestChallenges checks that the server writes the challenge for the client, and takes only
// the scopes from the worker's challenge.
func TestChallenges(t *testing.T) {
	const own = `Bearer realm="here", error="insufficient_scope", scope="codex:run", resource_metadata="https://here.example/metadata"`
	for _, tt := range []struct {
		status int
		sent   []string
		want   []string
	}{
		{403, []string{`Bearer realm="codex-mcp", error="insufficient_scope", scope="codex:run", resource_metadata="https://here.example/metadata"`}, []string{own}},
		{403, []string{`Bearer scope="codex:run evil", authorization_uri="https://evil.example"`}, []string{own}},
		{403, []string{`Bearer scope="codex:run"`, `Bearer resource_metadata="https://evil.example/metadata"`}, []string{own}},
		{403, []string{`Bearer resource_metadata="https://evil.example/metadata"`}, nil},
		{400, []string{`Bearer scope="codex:run", resource_metadata="https://evil.example/metadata"`}, nil},
		{200, []string{`Bearer scope="codex:run"`}, nil},
	} {
		front := behind(t, mcphttp.Principal{Name: "ann"}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Www-Authenticate"] = tt.sent
			w.WriteHeader(tt.status)
		})
		answer := post(t, front)
		must.Equal(t, fmt.Sprint("the status with ", tt.sent), tt.status, answer.StatusCode)
		must.Equal(t, fmt.Sprint("the challenges of ", tt.sent), tt.want, answer.Header.Values("Www-Authenticate"))
	}
}

// TestNotReached checks that a request is said to have had no effect only if no worker could get it.
func TestNotReached(t *testing.T) {
	p := newPool(Options{HTTP: settings.HTTP{Principals: map[string]settings.Principal{"ann": {}}}, Metrics: metrics.New(), Logger: slog.New(slog.DiscardHandler)})
	started := 0
	p.start = func(context.Context, string) (*process, error) {
		if started++; started > 2 {
			return nil, errors.New("no more")
		}
		w := p.newWorker(func(context.Context) (net.Conn, error) { return nil, errors.New("refused") })
		time.AfterFunc(10*time.Millisecond, func() { close(w.exited) }) // it ends
		return w, nil
	}
	for _, name := range []string{"ann", "bob"} {
		w := httptest.NewRecorder()
		p.Serve(w, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}")), mcphttp.Principal{Name: name})
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "was not carried out") || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if started != 3 {
		t.Errorf("%d workers were tried", started)
	}
}
