package link_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/linktest"
)

// TestPeers checks who may call a node, and whom a front calls.
func TestPeers(t *testing.T) {
	t.Parallel()
	var carried atomic.Int32
	a, other := linktest.New(t), linktest.New(t)
	about := func(names ...string) *x509.Certificate { return &x509.Certificate{DNSNames: names} }
	own := a.Issue(about(linktest.Service))
	foreign := other.Issue(about(linktest.Service))
	for name, tt := range map[string]struct {
		files link.Certificates
		bad   string // what Check says; "" if nothing
		ok    bool
	}{
		"a gateway":                      {own, "", true},
		"another key of the service":     {a.Issue(about(linktest.Service, "m1.example.com")), "", true},
		"a NATS server":                  {a.Issue(about("m1.example.com")), "", false},
		"the name of the service second": {a.Issue(about("m1.example.com", linktest.Service)), "", false},
		"no name":                        {a.Issue(&x509.Certificate{}), "no DNS name", false},
		"another authority":              {foreign, "", false},
		"another authority, trusts ours": {link.Certificates{CA: own.CA, Cert: foreign.Cert, Key: foreign.Key}, "would refuse it", false},
		"no longer valid":                {a.Issue(&x509.Certificate{DNSNames: []string{linktest.Service}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}), "would refuse it", false},
		"only for servers":               {a.Issue(&x509.Certificate{DNSNames: []string{linktest.Service}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}), "would refuse it", false},
		"only for clients":               {a.Issue(&x509.Certificate{DNSNames: []string{linktest.Service}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}), "would refuse it", false},
		"another's key":                  {link.Certificates{CA: own.CA, Cert: own.Cert, Key: foreign.Key}, "link.cert, link.key: ", false},
		"no files":                       {link.Certificates{}, "missing", false},
		"no authority":                   {link.Certificates{CA: own.Key, Cert: own.Cert, Key: own.Key}, "link.ca: ", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.files.Check(); (err == nil) != (tt.bad == "") || err != nil && !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("the check: %v, want %q", err, tt.bad)
			}
			for _, side := range []string{"the front", "the node"} {
				p := newPair(t, func(http.ResponseWriter, *http.Request) { carried.Add(1) })
				files := map[string]link.Certificates{"the front": own, "the node": own}
				files[side] = tt.files
				server := link.NewServer(nodeOf{func(http.ResponseWriter, *http.Request) { carried.Add(1) }, nil}, slog.New(slog.DiscardHandler))
				l, address := linktest.Listen(t)
				server.Listen(l, files["the node"])
				client := link.NewClient(files["the front"])
				before := carried.Load()
				p.server, p.client, p.to = server, client, link.Place{ID: server.ID(), Address: address}
				answer, err := p.do(within(t), 7, nil)
				if err == nil {
					answer.Body.Close()
				} else if !errors.Is(err, link.ErrAbsent) {
					t.Errorf("%s: %v", side, err)
				}
				if got := carried.Load() > before; got != tt.ok || got != (err == nil) {
					t.Errorf("%s: carried out: %t, %v", side, got, err)
				}
				client.Close()
			}
		})
	}
}

// TestNewCertificates replaces the files. Connections after that use them.
func TestNewCertificates(t *testing.T) {
	a := linktest.New(t)
	about := func() *x509.Certificate { return &x509.Certificate{DNSNames: []string{linktest.Service}} }
	p := newPair(t, func(http.ResponseWriter, *http.Request) {})
	for range 2 {
		next := a.Issue(about())
		for from, to := range map[string]string{next.CA: p.files.CA, next.Cert: p.files.Cert, next.Key: p.files.Key} {
			text, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		p.client.Close()
		answer, err := p.do(within(t), 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
}

// TestHostileHeaders sends what clients may send. Nothing of it changes for whom the request is, nor the connection.
func TestHostileHeaders(t *testing.T) {
	got := make(chan http.Header, 1)
	p := newPair(t, func(w http.ResponseWriter, r *http.Request) {
		if h := link.HeadOf(r.Context()); h.User != "ann" || h.Sender != "ann" || h.Epoch != 7 || len(h.Scopes) != 0 || len(r.Trailer) > 0 || r.Host != "localhost" {
			t.Errorf("the head: %+v, %v", h, r)
		}
		got <- r.Header
		for name, value := range map[string]string{
			"Codex-Mcp-Link-What": "refused", "Codex-Mcp-Link-Clock": `{"ran":1}`, "Codex-Mcp-Link": "x", "Kept": "1", "Trailer": "Late", http.TrailerPrefix + "Other": "x",
		} {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, "answer")
		w.Header().Set("Late", "x")
	})
	forged := `{"user":"bob","sender":"bob","scopes":["codex:run"],"epoch":7,"node":"` + p.to.ID + `"}`
	for name, h := range map[string]http.Header{
		"the head":                {"Codex-Mcp-Link": {forged}},
		"the head twice":          {"Codex-Mcp-Link": {forged, forged}},
		"in small letters":        {"codex-mcp-link": {forged}},
		"what becomes of it":      {"Codex-Mcp-Link-What": {"refused"}, "Codex-Mcp-Link-Clock": {"{}"}},
		"listed by Connection":    {"Connection": {"Codex-Mcp-Link, x-gone", "close, Codex-Mcp-Link-Clock"}, "X-Gone": {"x"}},
		"an upgrade":              {"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Http2-Settings": {"x"}},
		"Expect":                  {"Expect": {"100-continue"}},
		"Transfer-Encoding":       {"Transfer-Encoding": {"chunked"}, "Content-Length": {"3"}},
		"trailers":                {"Trailer": {"Codex-Mcp-Link"}, "Te": {"trailers"}},
		"secrets":                 {"Authorization": {"Bearer x"}, "Cookie": {"a=b"}, "Proxy-Authorization": {"x"}, "Proxy-Connection": {"keep-alive"}, "Keep-Alive": {"9"}},
		"retries":                 {"Idempotency-Key": {"x"}, "X-Idempotency-Key": {"x"}},
		"pseudo headers and more": {"Host": {"evil"}},
	} {
		r, err := http.NewRequestWithContext(within(t), http.MethodPost, "/mcp", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = maps.Clone(h)
		r.Header["Kept"] = []string{"1"}
		r.Trailer = http.Header{"Codex-Mcp-Link": {forged}}
		answer, err := p.client.Do(r.Context(), p.to, link.Head{User: "ann", Sender: "ann", Epoch: 7}, r)
		if name == "in small letters" { // HTTP servers do not make such names
			if err == nil {
				answer.Body.Close()
				<-got
				t.Errorf("%s: it is carried out", name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := io.ReadAll(answer.Body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		answer.Body.Close()
		at := <-got
		for _, bad := range []string{
			"Codex-Mcp-Link", "Codex-Mcp-Link-What", "Codex-Mcp-Link-Clock", "Connection", "X-Gone", "Upgrade", "Expect", "Transfer-Encoding", "Content-Length", "Trailer", "Te", "Authorization", "Cookie",
			"Proxy-Authorization", "Proxy-Connection", "Keep-Alive", "Host",
		} {
			if at[bad] != nil {
				t.Errorf("%s: the node gets %s: %q", name, bad, at[bad])
			}
		}
		for _, bad := range []string{"Codex-Mcp-Link-What", "Codex-Mcp-Link-Clock", "Trailer", "Late", "Other"} {
			if answer.Header[bad] != nil {
				t.Errorf("%s: the front gets %s: %q", name, bad, answer.Header[bad])
			}
		}
		if at.Get("Kept") != "1" || answer.Header.Get("Kept") != "1" {
			t.Errorf("%s: others are gone: %v, %v", name, at, answer.Header)
		}
	}
	r, err := http.NewRequestWithContext(within(t), http.MethodPost, "/mcp", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Long"] = []string{strings.Repeat("x", 256<<10)}
	if _, err := p.client.Do(r.Context(), p.to, link.Head{Epoch: 7}, r); !errors.Is(err, link.ErrRefused) {
		t.Errorf("long headers: %v", err)
	}
}

// TestForgedHeads sends heads that no front sends, with its certificate. Only those that are whole are carried out, and
// those once.
func TestForgedHeads(t *testing.T) {
	var carried atomic.Int32
	p := newPair(t, func(w http.ResponseWriter, r *http.Request) {
		carried.Add(1)
		_, _ = io.Copy(w, r.Body)
	})
	send := p.forger()
	answer, err := send(http.Header{"Codex-Mcp-Link": {`{"node":"` + p.to.ID + `"}`}})
	if err != nil || answer.StatusCode != http.StatusNoContent {
		t.Fatalf("the time: %v, %v", answer, err)
	}
	head := func(change map[string]any) string {
		now := map[string]any{}
		if err := json.Unmarshal([]byte(answer.Header.Get("Codex-Mcp-Link-Clock")), &now); err != nil {
			t.Fatal(err)
		}
		m := map[string]any{"node": p.to.ID, "clock": now, "request": "a", "method": "GET", "url": "/x", "epoch": 7, "user": "ann"}
		maps.Copy(m, change)
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, tt := range []struct {
		name   string
		heads  []string
		status int // 0 is the end of the exchange
		times  int32
	}{
		{"none", nil, 400, 0},
		{"two", []string{head(nil), head(nil)}, 400, 0},
		{"no JSON", []string{"x"}, 400, 0},
		{"an unknown member", []string{head(map[string]any{"more": 1})}, 400, 0},
		{"a member in capital letters", []string{strings.Replace(head(nil), `"user"`, `"User"`, 1)}, 400, 0},
		{"a member twice", []string{strings.Replace(head(nil), `"user"`, `"user":"bob","user"`, 1)}, 400, 0},
		{"too deep", []string{`{"scopes":` + strings.Repeat("[", 100000)}, 400, 0},
		{"another node", []string{head(map[string]any{"node": "x"})}, 421, 0},
		{"another epoch", []string{head(map[string]any{"request": "b", "epoch": 6})}, 421, 0},
		{"no time", []string{head(map[string]any{"request": "c", "clock": map[string]any{}})}, 421, 0},
		{"an old time", []string{head(map[string]any{"request": "d", "clock": map[string]any{"ran": 1, "wall": 1}})}, 421, 0},
		{"a later time", []string{head(map[string]any{"request": "e", "clock": map[string]any{"ran": int64(1) << 60, "wall": int64(1) << 62}})}, 421, 0},
		{"an address elsewhere", []string{head(map[string]any{"request": "f", "url": "http://example.com/x"})}, 421, 0},
		{"a path that is none", []string{head(map[string]any{"request": "g", "url": "*"})}, 421, 0},
		{"a line break", []string{head(map[string]any{"request": "h", "url": "/x HTTP/1.1\r\nHost: y"})}, 421, 0},
		{"whole", []string{head(nil)}, 200, 1},
		{"again", []string{head(nil)}, 0, 0},
		{"again for another user", []string{head(map[string]any{"user": "bob"})}, 0, 0},
		{"two slashes are no host", []string{head(map[string]any{"request": "i", "url": "//example.com/x"})}, 200, 1},
	} {
		before := carried.Load()
		answer, err := send(http.Header{"Codex-Mcp-Link": tt.heads})
		if (err != nil) != (tt.status == 0) || err == nil && answer.StatusCode != tt.status {
			t.Errorf("%s: %v, %v; want %d", tt.name, answer, err, tt.status)
		}
		if n := carried.Load() - before; n != tt.times {
			t.Errorf("%s: carried out %d times, want %d", tt.name, n, tt.times)
		}
	}
	// Without HTTP/2 there is nothing.
	conn, err := tls.Dial("tcp", p.to.Address, &tls.Config{InsecureSkipVerify: true, Certificates: p.pair()})
	if err == nil {
		_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		text, _ := io.ReadAll(conn)
		conn.Close()
		if strings.HasPrefix(string(text), "HTTP/1.1 2") {
			t.Errorf("without HTTP/2: %s", text)
		}
	}
	plain, err := net.Dial("tcp", p.to.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_, _ = fmt.Fprint(plain, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if text, _ := io.ReadAll(plain); strings.Contains(string(text), "200") {
		t.Errorf("without TLS: %q", text)
	}
}

// pair returns the certificate of the service.
func (p *pair) pair() []tls.Certificate {
	p.t.Helper()
	own, err := tls.LoadX509KeyPair(p.files.Cert, p.files.Key)
	if err != nil {
		p.t.Fatal(err)
	}
	return []tls.Certificate{own}
}

// forger returns what sends requests with any headers and a certificate of the service. It reads the answers.
func (p *pair) forger() func(http.Header) (*http.Response, error) {
	p.t.Helper()
	text, err := os.ReadFile(p.files.CA)
	if err != nil {
		p.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: p.pair(), RootCAs: roots, ServerName: linktest.Service}, ForceAttemptHTTP2: true}
	p.t.Cleanup(transport.CloseIdleConnections)
	return func(h http.Header) (*http.Response, error) {
		ctx, cancel := context.WithTimeout(p.t.Context(), patience)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+p.to.Address+"/", http.NoBody)
		if err != nil {
			return nil, err
		}
		r.Header = h
		answer, err := transport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return answer, err
	}
}
