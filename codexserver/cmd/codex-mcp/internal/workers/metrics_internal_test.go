package workers

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/google/go-cmp/cmp"
)

// TestMetricsHandler checks that a client cannot read metrics by any path or header.
func TestMetricsHandler(t *testing.T) {
	write := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	h := (&Link{}).Handler(write("next"), write("metrics"))
	front := behind(t, streamable.Principal{Name: "ann"}, h.ServeHTTP)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+metricsPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", principalHeader)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "next" {
		t.Errorf("a client reads %q, %v", text, err)
	}
}

// TestMetricsOmitted checks that the pool's metrics omit a worker whose answer is too long
// or an error, and one that has ended or has not started.
func TestMetricsOmitted(t *testing.T) {
	p := &Pool{log: slog.New(slog.DiscardHandler), slots: map[string]*slot{"none": {}}}
	dir := t.TempDir()
	for name, h := range map[string]http.HandlerFunc{
		"ann": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a 1\n") },
		"most": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("a", maxMetrics))
		},
		"more": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("a", maxMetrics+1))
		},
		"refuse": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"ended":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a 1\n") },
	} {
		socket := filepath.Join(dir, name)
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: (&Link{}).Handler(http.NotFoundHandler(), h)}
		serving := make(chan error, 1)
		go func() { serving <- server.Serve(l) }()
		t.Cleanup(func() {
			server.Close()
			<-serving
		})
		w := &worker{dial: dialer(socket), exited: make(chan struct{})}
		if name == "ended" {
			close(w.exited)
		}
		p.slots[name] = &slot{worker: w}
	}
	got := map[string]int{}
	for name, text := range p.Metrics(t.Context()) {
		got[name] = len(text)
	}
	if diff := cmp.Diff(map[string]int{"ann": 4, "most": maxMetrics}, got); diff != "" {
		t.Errorf("lengths (-want +got):\n%s", diff)
	}
}
