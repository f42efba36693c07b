package link_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// node is a handler with the leases of all users, in the epoch 7.
type node struct {
	handle http.HandlerFunc
	got    atomic.Pointer[link.Head] // of the latest request
	lost   context.Context           // when it ends, so do the leases; nil is never
}

func (n *node) Admit(ctx context.Context, h link.Head) (context.Context, func(), error) {
	if h.Epoch != 7 {
		return nil, nil, errors.New("another epoch")
	}
	if n.lost == nil {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(n.lost, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

func (n *node) Serve(w http.ResponseWriter, r *http.Request, h link.Head) {
	n.got.Store(&h)
	n.handle(w, r)
}

// pair is a node and a front that sends it requests of ann.
type pair struct {
	t       *testing.T
	client  *link.Client
	node    *node
	server  *link.Server
	files   link.Certificates
	address string
}

func newPair(t *testing.T, handle http.HandlerFunc) *pair {
	t.Helper()
	files := clustertest.Certificates(t)
	return pairOf(t, &node{handle: handle}, files, files)
}

// pairOf returns a pair with files of the node and of the front.
func pairOf(t *testing.T, n *node, files, others link.Certificates) *pair {
	t.Helper()
	p := &pair{t: t, node: n, server: link.NewServer(n, slog.New(slog.DiscardHandler)), files: files}
	l, address := clustertest.Listen(t)
	p.address = address
	p.server.Listen(l, files)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		must.Check(t, p.server.Close(ctx))
	})
	p.client = link.NewClient(others, slog.New(slog.DiscardHandler))
	t.Cleanup(p.client.Close)
	return p
}

// begin sends a request with the epoch 7, and with the headers. The caller closes the body of the answer.
func (p *pair) begin(ctx context.Context, path, body string, h http.Header) (*http.Response, error) {
	p.t.Helper()
	epoch := uint64(7)
	if path == "/old" {
		epoch--
	}
	head := link.Head{Node: p.server.ID(), Epoch: epoch, User: mcphttp.Principal{Name: "ann", Scopes: []mcphttp.Scope{}}}
	return clustertest.Post(ctx, p.t, func(w http.ResponseWriter, r *http.Request) error { return p.client.Do(w, r, p.address, head) }, path, body, h)
}

// send sends a request, and returns its answer, or an answer without a status.
func (p *pair) send(path, body string, h http.Header) (*http.Response, string, error) {
	p.t.Helper()
	answer, err := p.begin(clustertest.Bounded(p.t), path, body, h)
	if err != nil {
		return &http.Response{}, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer, string(text), err
}

// TestPeers checks whom a front and a node talk to.
func TestPeers(t *testing.T) {
	a, other := clustertest.NewAuthority(t), clustertest.NewAuthority(t)
	about := func(names ...string) *x509.Certificate { return &x509.Certificate{DNSNames: names} }
	own, foreign := a.Issue(about(clustertest.Service)), other.Issue(about(clustertest.Service))
	for name, tt := range map[string]struct {
		files link.Certificates
		bad   string // what Check says; "" if nothing
		ok    bool
	}{
		"a gateway":                      {own, "", true},
		"another key of the service":     {a.Issue(about(clustertest.Service, "m1.example.com")), "", true},
		"a NATS server":                  {a.Issue(about("m1.example.com")), "", false},
		"the name of the service second": {a.Issue(about("m1.example.com", clustertest.Service)), "", false},
		"no name":                        {a.Issue(&x509.Certificate{}), "no DNS name", false},
		"another authority":              {foreign, "", false},
		"another authority, trusts ours": {link.Certificates{CA: own.CA, Cert: foreign.Cert, Key: foreign.Key}, "would refuse it", false},
		"no longer valid":                {a.Issue(&x509.Certificate{DNSNames: []string{clustertest.Service}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}), "would refuse it", false},
		"only for servers":               {a.Issue(&x509.Certificate{DNSNames: []string{clustertest.Service}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}), "would refuse it", false},
		"only for clients":               {a.Issue(&x509.Certificate{DNSNames: []string{clustertest.Service}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}), "would refuse it", false},
		"another's key":                  {link.Certificates{CA: own.CA, Cert: own.Cert, Key: foreign.Key}, "link.cert, link.key: ", false},
		"no files":                       {link.Certificates{}, "missing", false},
		"no authority":                   {link.Certificates{CA: own.Key, Cert: own.Cert, Key: own.Key}, "link.ca: ", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.files.Check(); (err == nil) != (tt.bad == "") || err != nil && !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("the check: %v, want %q", err, tt.bad)
			}
			if tt.files == (link.Certificates{}) {
				return
			}
			for _, files := range [][2]link.Certificates{{own, tt.files}, {tt.files, own}} {
				var carried atomic.Int32
				p := pairOf(t, &node{handle: func(http.ResponseWriter, *http.Request) { carried.Add(1) }}, files[0], files[1])
				answer, _, err := p.send("/mcp", "", nil)
				if got := carried.Load() > 0; got != tt.ok || got != (answer.StatusCode == 200) {
					t.Errorf("carried out: %t, %v, %v", got, answer.StatusCode, err)
				}
			}
		})
	}
}

// TestNewCertificates replaces the files. Connections after that use them.
func TestNewCertificates(t *testing.T) {
	a := clustertest.NewAuthority(t)
	p := newPair(t, func(http.ResponseWriter, *http.Request) {})
	for range 2 {
		next := a.Issue(&x509.Certificate{DNSNames: []string{clustertest.Service}})
		for from, to := range map[string]string{next.CA: p.files.CA, next.Cert: p.files.Cert, next.Key: p.files.Key} {
			must.OK(t, os.WriteFile(to, must.Get(os.ReadFile(from))(t), 0o600))
		}
		p.client.Close()
		if answer, _, err := p.send("/mcp", "", nil); answer.StatusCode != 200 {
			t.Errorf("%d, %v", answer.StatusCode, err)
		}
	}
}

// TestHostileHeaders sends what clients may send. Nothing of it changes for whom the request is, nor the connection.
func TestHostileHeaders(t *testing.T) {
	var got http.Header
	p := newPair(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Codex-Mcp-Link", "refused") // which only the server may say
		w.WriteHeader(http.StatusOK)
		_, _ = io.Copy(w, r.Body)
	})
	forged := p.server.ID() + " 7 bob codex:run"
	for name, h := range map[string]http.Header{
		"the head":             {"Codex-Mcp-Link": {forged}},
		"the head twice":       {"Codex-Mcp-Link": {forged, forged}},
		"in small letters":     {"codex-mcp-link": {forged}},
		"listed by Connection": {"Connection": {"Codex-Mcp-Link, x-gone"}, "X-Gone": {"x"}},
		"Expect":               {"Expect": {"100-continue"}},
		"trailers":             {"Te": {"trailers"}},
		"secrets":              {"Authorization": {"Bearer x"}, "Cookie": {"a=b"}, "Proxy-Authorization": {"x"}, "Proxy-Connection": {"keep-alive"}, "Keep-Alive": {"9"}},
	} {
		h["Kept"] = []string{"1"}
		answer, body, err := p.send("/mcp", "body", h)
		if err != nil || body != "body" || answer.Header.Get("Codex-Mcp-Link") != "" || got.Get("Kept") != "1" {
			t.Errorf("%s: %q, %v, %v; the node gets %v", name, body, err, answer.Header, got)
		}
		for _, bad := range []string{"Connection", "X-Gone", "Upgrade", "Expect", "Trailer", "Authorization", "Cookie", "Proxy-Authorization", "Proxy-Connection", "Keep-Alive"} {
			if got[bad] != nil {
				t.Errorf("%s: the node gets %s: %q", name, bad, got[bad])
			}
		}
		if head := p.node.got.Load(); head.User.Name != "ann" || head.Epoch != 7 || head.User.Scopes == nil || len(head.User.Scopes) != 0 {
			t.Errorf("%s: the head: %+v", name, head)
		}
	}
}

// TestForgedHeads sends heads that no front sends, with its certificate. Only those that are whole are carried out.
func TestForgedHeads(t *testing.T) {
	carried := 0
	p := newPair(t, func(http.ResponseWriter, *http.Request) { carried++ })
	pair := must.Get(tls.LoadX509KeyPair(p.files.Cert, p.files.Key))(t)
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	id := p.server.ID()
	for name, heads := range map[string][]string{
		"none":                  nil,
		"two":                   {id + " 7 ann", id + " 7 ann"},
		"no user":               {id + " 7"},
		"an epoch that is none": {id + " 7x ann"},
		"a negative epoch":      {id + " -7 ann"},
		"a long epoch":          {id + " 18446744073709551623 ann"},
		"another node":          {"x 7 ann"},
		"another epoch":         {id + " 6 ann"},
		"whole":                 {id + " 7 ann codex:read codex:all"},
	} {
		carried = 0
		r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+p.address+"/mcp", http.NoBody))(t)
		r.Header["Codex-Mcp-Link"] = heads
		answer := must.Get(transport.RoundTrip(r))(t)
		answer.Body.Close()
		if whole := name == "whole"; (answer.StatusCode == 200) != whole || (carried == 1) != whole {
			t.Errorf("%s: %d, carried out %d times", name, answer.StatusCode, carried)
		}
	}
	if got := p.node.got.Load().User.Scopes; len(got) != 1 || got[0] != mcphttp.ScopeRead {
		t.Errorf("the scopes: %v", got)
	}
}

// TestNotCarriedOut checks which errors say that a request was not carried out, and that no request is sent twice, whatever makes
// net/http do so.
func TestNotCarriedOut(t *testing.T) {
	carried := 0
	p := newPair(t, func(http.ResponseWriter, *http.Request) {
		carried++
		panic(http.ErrAbortHandler)
	})
	if _, _, err := p.send("/old", "body", nil); !errors.Is(err, link.ErrRefused) || !strings.Contains(err.Error(), "another epoch") {
		t.Errorf("another epoch: %v", err)
	}
	for i, h := range []http.Header{nil, {"Idempotency-Key": {"x"}}, {"X-Idempotency-Key": {"x"}}} {
		if _, _, err := p.send("/mcp", "body", h); err == nil || errors.Is(err, link.ErrRefused) || errors.Is(err, link.ErrAbsent) || carried != i+1 {
			t.Errorf("an answer that breaks off: %v, carried out %d times", err, carried-i)
		}
	}
	must.Check(t, p.server.Close(clustertest.Bounded(t)))
	if _, _, err := p.send("/mcp", "body", nil); !errors.Is(err, link.ErrAbsent) && !errors.Is(err, link.ErrRefused) {
		t.Errorf("a server that has ended: %v", err)
	}
	if err := p.server.Do(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil), link.Head{Epoch: 7}); !errors.Is(err, link.ErrRefused) {
		t.Errorf("one in this process that has ended: %v", err)
	}
	p.address = ""
	if _, _, err := p.send("/mcp", "body", nil); !errors.Is(err, link.ErrAbsent) {
		t.Errorf("no address: %v", err)
	}
}

// TestEnds ends requests that run: the client leaves, the lease is lost, and the server closes.
func TestEnds(t *testing.T) {
	for _, name := range []string{"the client leaves", "the lease is lost", "the server closes"} {
		t.Run(name, func(t *testing.T) {
			began, ended := make(chan struct{}), make(chan struct{})
			lost, lose := context.WithCancel(t.Context())
			files := clustertest.Certificates(t)
			p := pairOf(t, &node{lost: lost, handle: func(w http.ResponseWriter, r *http.Request) {
				close(began)
				for r.Context().Err() == nil { // the client reads nothing
					_, _ = w.Write(make([]byte, 64<<10))
				}
				close(ended)
				panic(http.ErrAbortHandler) // as a proxy does
			}}, files, files)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			answer := must.Get(p.begin(ctx, "/mcp", "x", nil))(t)
			defer answer.Body.Close()
			<-began
			switch name {
			case "the client leaves":
				leave()
			case "the lease is lost":
				lose()
			default:
				closing, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				must.Check(t, p.server.Close(closing))
			}
			lose()
			clustertest.Await(t, "the request goes on", ended)
			if _, err := io.ReadAll(answer.Body); err == nil {
				t.Error("a part of an answer looks whole")
			}
		})
	}
}
