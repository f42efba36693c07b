// Package hoststest is an internet of one server, for tests of commands that reach hosts.
package hoststest

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
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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

// Address is that of every host in a world, which the proxy takes for one of the internet.
var Address = netip.MustParseAddr("93.184.215.14")

// World is an internet of one server: each name below example.com leads to it, but inside.example.com to a private address.
type World struct {
	Proxy hosts.Proxy
	CA    string // the file of its authority
	Dir   string // a folder for commands

	mu       sync.Mutex
	resolved []string
}

// Resolved returns the names that were resolved.
func (w *World) Resolved() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.resolved)
}

// New begins a world with a handler for all requests. It skips the test where commands cannot have hosts. The tests'
// program must begin with [box.Main].
func New(t testing.TB, h http.Handler) *World {
	t.Helper()
	boxtest.Need(t)
	if err := box.HostsAvailable(); err != nil {
		t.Skip(err)
	}
	w := &World{Dir: boxtest.FolderOutsideTmp(t)}
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{w.certificate(t)}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it
	s.StartTLS()
	t.Cleanup(s.Close)
	w.Proxy = hosts.Proxy{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.resolved = append(w.resolved, host)
			if host != "example.com" && !strings.HasSuffix(host, ".example.com") {
				return nil, fmt.Errorf("%s does not exist", host)
			}
			if strings.HasPrefix(host, "inside.") {
				return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
			}
			return []netip.Addr{Address}, nil
		},
		Dial: func(ctx context.Context, network, to string) (net.Conn, error) {
			if to != netip.AddrPortFrom(Address, 443).String() {
				return nil, fmt.Errorf("%s is not there", to)
			}
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		},
		Upstream: func(*http.Request) (*url.URL, error) { return nil, nil },
	}
	return w
}

// certificate makes an authority, whose file commands can read, and a certificate of it.
func (w *World) certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	root := must.Get(x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key))(t)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"example.com", "*.example.com"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, key))(t)
	w.CA = filepath.Join(w.Dir, "ca.pem")
	must.OK(t, os.WriteFile(w.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}), 0o644))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Environ returns the variables with which programs trust the world, and keep what they write in its folder.
func (w *World) Environ() []string {
	return []string{
		"HOME=" + w.Dir, "LC_ALL=C", "SSL_CERT_FILE=" + w.CA, "CURL_CA_BUNDLE=" + w.CA, "GIT_SSL_CAINFO=" + w.CA, "NODE_EXTRA_CA_CERTS=" + w.CA,
		"REQUESTS_CA_BUNDLE=" + w.CA, "PIP_CERT=" + w.CA, "CARGO_HTTP_CAINFO=" + w.CA, "npm_config_cafile=" + w.CA,
		"npm_config_registry=https://registry.example.com/", "npm_config_cache=" + w.Dir + "/cache", "npm_config_update_notifier=false",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
	}
}

// Ran is what came of a command.
type Ran struct {
	run.Result
	Used    []string
	Refused []hosts.Refusal
}

// Run runs a command in the sandbox workspace-write, with a network by the host.
func (w *World) Run(t testing.TB, decide hosts.Decide, argv ...string) (got Ran) {
	t.Helper()
	ctx := t.Context()
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite}
	env := append(run.EnvPolicy{Inherit: run.InheritCore}.Environ(os.Environ()), w.Environ()...)
	c := must.Get(box.New(box.Options{Hosts: true}).Confine(policy, w.Dir, env))(t)
	h := c.Hosts()
	if h == nil {
		t.Fatal("the sandbox has no hosts")
	}
	n := w.Proxy.Network(ctx, decide)
	var err error
	got.Result, err = boxtest.Starter(t).Run(ctx, run.Spec{
		Argv: argv, Dir: w.Dir, Env: h.Environ(env), Confinement: h, Sockets: n.Serve, Timeout: 2 * time.Minute,
	}, nil)
	must.OK(t, err)
	got.Used, got.Refused = n.Close()
	return got
}
