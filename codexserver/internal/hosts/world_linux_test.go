package hosts_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/hosts"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// address is that of every host in the world, which the proxy takes for one of the internet.
var address = netip.MustParseAddr("93.184.215.14")

// world is an internet of one server: each name below example.com leads to it.
type world struct {
	proxy hosts.Proxy
	ca    string // the file of its authority
	dir   string // the folder of commands

	mu     sync.Mutex
	asked  []string // the names that were resolved, and the hosts that requests named
	dialed []string
}

func (w *world) saw(to *[]string, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*to = append(*to, what)
}

// newWorld begins a world with a handler for all requests.
func newWorld(t testing.TB, h http.Handler) *world {
	t.Helper()
	needHosts(t)
	w := &world{dir: boxtest.FolderOutsideTmp(t)}
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{w.certificate(t)}}
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	w.proxy = hosts.Proxy{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			w.saw(&w.asked, host)
			if host != "example.com" && !strings.HasSuffix(host, ".example.com") {
				return nil, fmt.Errorf("%s does not exist", host)
			}
			return []netip.Addr{address}, nil
		},
		Dial: func(ctx context.Context, network, to string) (net.Conn, error) {
			w.saw(&w.dialed, to)
			if to != netip.AddrPortFrom(address, 443).String() {
				return nil, fmt.Errorf("%s is not there", to)
			}
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		},
		Upstream: func(*http.Request) (*url.URL, error) { return nil, nil },
	}
	return w
}

func needHosts(t testing.TB) {
	t.Helper()
	boxtest.Need(t)
	if err := box.HostsAvailable(); err != nil {
		t.Skip(err)
	}
}

// certificate makes an authority, whose file commands can read, and a certificate of it.
func (w *world) certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	root := must.Get(x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key))(t)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"example.com", "*.example.com"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, key))(t)
	w.ca = filepath.Join(w.dir, "ca.pem")
	must.OK(t, os.WriteFile(w.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}), 0o644))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// ran is what came of a command.
type ran struct {
	run.Result
	used    []string
	refused []hosts.Refusal
}

// command runs a command in the sandbox workspace-write, in a network by the host.
func (w *world) command(t testing.TB, decide hosts.Decide, argv ...string) ran {
	t.Helper()
	return w.in(t, t.Context(), decide, argv...)
}

func (w *world) in(t testing.TB, ctx context.Context, decide hosts.Decide, argv ...string) (got ran) {
	t.Helper()
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite}
	env := append(os.Environ(), "HOME="+w.dir, "SSL_CERT_FILE="+w.ca, "LC_ALL=C")
	c := must.Get(box.New(box.Options{Hosts: true}).Confine(policy, w.dir, env))(t)
	h := c.Hosts()
	if h == nil {
		t.Fatal("the sandbox has no hosts")
	}
	n := w.proxy.Network(ctx, decide)
	var err error
	got.Result, err = boxtest.Starter(t).Run(ctx, run.Spec{
		Argv: argv, Dir: w.dir, Env: h.Environ(env), Confinement: h, Sockets: n.Serve, Timeout: 2 * time.Minute,
	}, nil)
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	got.used, got.refused = n.Close()
	return got
}
