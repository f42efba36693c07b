//go:build cluster

package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestClusterProxy checks that no client and no proxy sends a request again that a front got before
// it died: a node may have carried it out. A request that no front has begun is sent to another one.
func TestClusterProxy(t *testing.T) {
	var began atomic.Int32
	die := func(w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	}
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // an empty one is another case
		switch n := began.Add(1); string(body) {
		case "dies":
			die(w)
		case "dies while it answers":
			w.Header().Set("Content-Length", "100")
			if _, err := io.WriteString(w, "begin"); err != nil {
				t.Error(err)
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			die(w)
		case "is busy":
			if n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
	})
	var fronts []string
	for range frontCount {
		s := httptest.NewServer(front)
		t.Cleanup(s.Close)
		fronts = append(fronts, s.URL)
	}
	file := filepath.Join(t.TempDir(), "certificate.pem")
	if err := os.WriteFile(file, certificate(t), 0o600); err != nil {
		t.Fatal(err)
	}
	address := startProxy(t, file, fronts...)
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		for text, want := range map[string]int32{"dies": 1, "dies while it answers": 1, "is busy": 2} {
			t.Run(protocol+"/"+text, func(t *testing.T) {
				transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: protocol == "HTTP/2"}
				defer transport.CloseIdleConnections()
				send := func(body string) (string, error) {
					answer, err := (&http.Client{Transport: transport}).Post("https://"+address+mcpPath, "application/json", strings.NewReader(body))
					if err != nil {
						return "", err
					}
					defer answer.Body.Close()
					_, err = io.Copy(io.Discard, answer.Body)
					return answer.Status, err
				}
				if status, err := send("works"); err != nil || status != "200 OK" { // the connection is used again
					t.Fatal(status, err)
				}
				began.Store(0)
				status, err := send(text)
				if n := began.Load(); n != want {
					t.Errorf("it was begun %d times, want %d; the client got %s, %v", n, want, status, err)
				}
				if answered := err == nil && status == "200 OK"; answered != (want == 2) {
					t.Errorf("the client got %s, %v", status, err)
				}
			})
		}
	}
}
