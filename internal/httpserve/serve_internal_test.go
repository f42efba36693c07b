package httpserve

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"github.com/spf13/pflag"
)

// TestFlags checks where a server may listen, and which hosts it needs.
func TestFlags(t *testing.T) {
	for _, tt := range []struct{ args, url, err, hosts string }{
		{"", "http://127.0.0.1:4517/x", "", ""},
		{"--listen=localhost:1", "http://localhost:1/x", "", ""},
		{"--listen=[::1]:1", "http://[::1]:1/x", "", ""},
		{"--listen=127.0.0.1", "", "--listen", "missing"},
		{"--listen=:1", "", "others on the network", "missing"},
		{"--listen=192.0.2.1:1", "", "others on the network", "missing"},
		{"--listen=server:1", "", "others on the network", "missing"},
		{"--listen=:1 --behind-proxy=192.0.2.1", "http://:1/x", "", "missing"},
		{"--behind-proxy=proxy", "", "not an IP address", ""},
	} {
		var f Flags
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Add(set)
		must.OK(t, set.Parse(strings.Fields(tt.args)))
		if err := f.Check(); (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v", tt.args, err)
		} else if got := f.URL("/x"); err == nil && got != tt.url {
			t.Errorf("%s: %s", tt.args, got)
		}
		if err := f.CheckHosts(nil); (err != nil) != (tt.hosts != "") {
			t.Errorf("%s: without hosts: %v", tt.args, err)
		}
		if err := f.CheckHosts([]string{"example.com"}); err != nil {
			t.Errorf("%s: with hosts: %v", tt.args, err)
		}
	}
}

var errBackend = errors.New("the backend")

// work is a backend whose work ends when release is closed. It fails when it is closed if fails is set.
type work struct {
	release chan struct{}
	during  func() string // what happens meanwhile, if not nil
	fails   error
	log     []string
}

// Drain implements [Backend].
func (b *work) Drain(ctx context.Context) error {
	if b.during != nil {
		b.log = append(b.log, b.during())
		return nil
	}
	select {
	case <-b.release:
		b.log = append(b.log, "drained")
	case <-ctx.Done():
		b.log = append(b.log, "interrupted")
	}
	return ctx.Err()
}

// Close implements [Backend].
func (b *work) Close() error {
	b.log = append(b.log, "closed")
	return b.fails
}

// TestServe serves until the context ends, or cannot begin. The backend is closed once in each case.
func TestServe(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags Flags
		fails error
		want  string
	}{
		{"served", Flags{Listen: "127.0.0.1:0"}, nil, ""},
		{"the backend fails", Flags{Listen: "127.0.0.1:0"}, errBackend, "the backend"},
		{"only for a proxy", Flags{Listen: "127.0.0.1:0", Proxy: "192.0.2.1"}, nil, "proxy"},
		{"no address", Flags{Listen: "127.0.0.1:x"}, errBackend, "listen"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			mux := http.NewServeMux()
			mux.HandleFunc("/x", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") })
			b := &work{fails: tt.fails}
			s := &Server{Flags: &tt.flags, Mux: mux, Backend: b, Signals: []os.Signal{os.Interrupt}, Logger: slog.New(slog.DiscardHandler)}
			got := ""
			s.Ready = func() {
				defer cancel()
				answer, err := http.Get(s.URL("/x"))
				if err != nil {
					t.Error(err)
					return
				}
				defer answer.Body.Close()
				body, err := io.ReadAll(answer.Body)
				must.Check(t, err)
				got = string(body)
			}
			err := s.Serve(ctx)
			switch {
			case tt.want == "":
				if err != nil || got != "answer" {
					t.Errorf("%q, %v", got, err)
				}
			case tt.want == "proxy":
				if err != nil || !strings.Contains(got, "through the proxy") {
					t.Errorf("%q, %v", got, err)
				}
			case err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.fails):
				t.Error(err)
			}
			if len(b.log) != 1 {
				t.Errorf("the backend was %v", b.log)
			}
		})
	}
}

// TestDrain waits for the work until it ends, the time for it is over, or a second signal comes.
func TestDrain(t *testing.T) {
	for name, want := range map[string]struct {
		took time.Duration
		end  string
	}{
		"the work ends":   {time.Second, "drained"},
		"a second signal": {2 * time.Second, "interrupted"},
		"no time is left": {time.Minute, "interrupted"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &work{release: make(chan struct{})}
			signals := make(chan os.Signal, 1)
			go func() {
				switch name {
				case "the work ends":
					<-time.After(time.Second)
					close(b.release)
				case "a second signal":
					<-time.After(2 * time.Second)
					signals <- os.Interrupt
				}
			}()
			start := time.Now()
			(&Server{Backend: b, Drain: time.Minute}).drain(t.Context(), signals)
			synctest.Wait()
			if took := time.Since(start); took != want.took || len(b.log) != 1 || b.log[0] != want.end {
				t.Errorf("%s: %v after %v", name, b.log, took)
			}
		})
	}
}

// TestServerLimits pins what a client without a token can take: time, and bytes of headers.
func TestServerLimits(t *testing.T) {
	s := newServer(nil, slog.New(slog.DiscardHandler))
	if s.ReadHeaderTimeout != 10*time.Second || s.ReadTimeout != time.Minute || s.IdleTimeout != 2*time.Minute || s.MaxHeaderBytes != 64<<10 || maxConnections != 2048 {
		t.Errorf("%v, %v, %v, %d bytes, %d connections", s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout, s.MaxHeaderBytes, maxConnections)
	}
}

func TestPrintClients(t *testing.T) {
	var b strings.Builder
	if err := PrintClients(&b, "https://host/mcp", "t0k"); err != nil || strings.Count(b.String(), "https://host/mcp") != 3 || strings.Count(b.String(), "Bearer t0k") != 2 {
		t.Errorf("%s, %v", &b, err)
	}
	_, ofCode, _ := strings.Cut(b.String(), ".vscode/mcp.json. It asks for the token:\n")
	ofCode, _, _ = strings.Cut(ofCode, "Cursor")
	var file struct {
		Inputs []struct {
			ID       string `json:"id"`
			Password bool   `json:"password"`
		} `json:"inputs"`
		Servers map[string]struct {
			URL     string            `json:"url"`
			Headers map[string]string `json:"headers"`
		} `json:"servers"`
	}
	if err := json.Unmarshal([]byte(ofCode), &file); err != nil || len(file.Inputs) != 1 || !file.Inputs[0].Password || strings.Contains(ofCode, "t0k") ||
		file.Servers["codex"].Headers["Authorization"] != "Bearer ${input:"+file.Inputs[0].ID+"}" {
		t.Errorf("%s: %+v, %v", ofCode, file, err)
	}
	r, w := io.Pipe()
	must.OK(t, r.Close())
	if err := PrintClients(w, "https://host/mcp", "t0k"); err == nil {
		t.Error("the error of the writer is lost")
	}
}

// TestOnlyFrom checks that only the proxy's address is served, in each of its forms.
func TestOnlyFrom(t *testing.T) {
	for _, tt := range []struct {
		proxy, remote string
		status        int
	}{
		{"", "192.0.2.1:1", 204},
		{"192.0.2.1", "192.0.2.1:1", 204},
		{"192.0.2.1", "[::ffff:192.0.2.1]:1", 204},
		{"::ffff:192.0.2.1", "192.0.2.1:1", 204},
		{"2001:db8::1", "[2001:db8:0::1]:1", 204},
		{"192.0.2.1", "192.0.2.10:1", 403},
		{"192.0.2.1", "127.0.0.1:1", 403},
		{"127.0.0.1", "[::1]:1", 403},
		{"192.0.2.1", "192.0.2.1", 403},
		{"192.0.2.1", "", 403},
		{"fe80::1", "[fe80::1%eth0]:1", 403},
	} {
		h := onlyFrom(tt.proxy, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.RemoteAddr = tt.remote
		h.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%q from %q: %d, want %d", tt.proxy, tt.remote, w.Code, tt.status)
		}
	}
}

// TestHealth checks the answers of the health checks in each state.
func TestHealth(t *testing.T) {
	var draining atomic.Bool
	var failure error
	h := withHealth(http.NewServeMux(), &draining, func() error { return failure })
	for _, tt := range []struct {
		draining bool
		failure  error
		ready    int
		text     string
	}{
		{false, nil, http.StatusOK, "ready\n"},
		{false, errors.New("cut off from a part"), http.StatusServiceUnavailable, "cut off from a part\n"},
		{true, nil, http.StatusServiceUnavailable, "draining\n"},
		{true, errors.New("cut off from a part"), http.StatusServiceUnavailable, "draining\n"},
		{false, nil, http.StatusOK, "ready\n"},
	} {
		draining.Store(tt.draining)
		failure = tt.failure
		for path, want := range map[string]int{"/readyz": tt.ready, "/healthz": http.StatusOK} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != want || w.Body.String() != map[string]string{"/readyz": tt.text, "/healthz": "ok\n"}[path] {
				t.Errorf("%+v: %s: %d %q", tt, path, w.Code, w.Body)
			}
		}
	}
}

// pipes is a listener for in-memory connections.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error { close(p); return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestKeepAlive sends several requests on one connection. Each comes after the write deadline of the answer before it.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := http.NewServeMux()
		m.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { // as the handlers of MCP do
			<-time.After(10 * time.Minute)
			control := http.NewResponseController(w)
			_ = control.SetWriteDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(w, "{}")
		})
		var draining atomic.Bool
		server := newServer(withHealth(m, &draining, nil), slog.New(slog.DiscardHandler))
		listener := make(pipes, 1)
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()
		ours, theirs := net.Pipe()
		listener <- theirs
		answers := bufio.NewReader(ours)
		for _, path := range []string{"/mcp", "/healthz", "/readyz", "/mcp", "/healthz"} {
			must.Get(io.WriteString(ours, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"))(t)
			answer, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s, %v", path, answer.Status, err)
			}
			<-time.After(keepAlive - time.Second)
		}
		must.Check(t, server.Close())
		<-ended
	})
}
