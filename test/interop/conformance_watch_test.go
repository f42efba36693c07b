package interop

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// watch is a proxy in front of a server that notes in which scenarios a call found no tool
// of its name. What such a scenario found out is not about the server.
type watch struct {
	url     string
	results string // folder of the suite's results

	mu      sync.Mutex
	folders []string
	fault   error
}

// checksFile is what the suite writes into a scenario's folder when the scenario has ended.
const checksFile = "checks.json"

// unknownTool is in the answer of both servers to such a call.
const unknownTool = "unknown tool"

// watchCalls starts a proxy, which adds the server's token if it has one.
func watchCalls(t *testing.T, r remote, results string) *watch {
	t.Helper()
	target, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{results: results}
	p := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			holdBody(p)
			p.Out.URL, p.Out.Host = target, p.In.Host
			if r.Token != "" {
				p.Out.Header.Set("Authorization", "Bearer "+r.Token)
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			answer.Body = &watchedBody{ReadCloser: answer.Body, found: w.note}
			return nil
		},
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

// note notes the scenario that runs. It runs at least until the client has the answer.
func (w *watch) note() {
	folder, err := runningScenario(w.results)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.folders, w.fault = append(w.folders, folder), cmp.Or(w.fault, err)
}

// runningScenario returns the folder of the scenario that runs: the suite makes it before the
// scenario begins, and runs one at a time.
func runningScenario(results string) (string, error) {
	all, err := os.ReadDir(results)
	if err != nil {
		return "", err
	}
	var open []string
	for _, e := range all {
		if _, err := os.Lstat(filepath.Join(results, e.Name(), checksFile)); err != nil {
			open = append(open, e.Name())
		}
	}
	if len(open) != 1 {
		return "", fmt.Errorf("scenarios that run: %q, want one", open)
	}
	return open[0], nil
}

// blind returns the folders of the scenarios in which a call found no tool.
func (w *watch) blind(t *testing.T) []string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		t.Fatal(w.fault)
	}
	return slices.Clone(w.folders)
}

// watchedBody looks for unknownTool in what is read.
type watchedBody struct {
	io.ReadCloser
	found func()
	end   []byte // of what was read
}

// Read implements [io.Reader].
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	seen := append(b.end, p[:n]...)
	if bytes.Contains(seen, []byte(unknownTool)) {
		b.found()
		seen = nil
	}
	b.end = slices.Clone(seen[max(0, len(seen)-len(unknownTool)+1):])
	return n, err
}
