package clustertest

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/internal/certtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// Service is the name of the service in the certificates of fronts and nodes.
const Service = "gateway.example.com"

// Authority signs certificates.
type Authority struct {
	t  testing.TB
	ca string // its file
	*certtest.Authority
}

// NewAuthority returns an authority.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, ca: filepath.Join(t.TempDir(), "ca.pem")}
	cert, _, as := a.Authority.Issue(t,
		&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.Authority = as
	write(t, a.ca, cert)
	return a
}

func write(t testing.TB, file string, text []byte) {
	t.Helper()
	must.OK(t, os.WriteFile(file, text, 0o600))
}

// Certificates returns the files of a front or a node of a new authority.
func Certificates(t testing.TB) link.Certificates {
	t.Helper()
	return NewAuthority(t).Issue(&x509.Certificate{DNSNames: []string{Service}})
}

// Issue signs a certificate of loopback with a new key for what about says. It is valid now, unless about says when.
func (a *Authority) Issue(about *x509.Certificate) link.Certificates {
	a.t.Helper()
	if about.IPAddresses == nil {
		about.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	cert, key, _ := a.Authority.Issue(a.t, about)
	file := filepath.Join(filepath.Dir(a.ca), rand.Text())
	write(a.t, file+".pem", cert)
	write(a.t, file+".key", key)
	return link.Certificates{CA: a.ca, Cert: file + ".pem", Key: file + ".key"}
}

// Listen returns a listener on loopback, and its address.
func Listen(t testing.TB) (net.Listener, string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	return l, l.Addr().String()
}

// Post sends a request as a front does, which passes it on by send. It returns the answer, whose body the caller closes, or the
// error of send.
func Post(
	ctx context.Context, t testing.TB, send func(http.ResponseWriter, *http.Request) error, path, body string,
	h http.Header,
) (*http.Response, error) {
	t.Helper()
	var failed error
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if failed = send(w, r); failed != nil {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(front.Close)
	r := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, front.URL+path, strings.NewReader(body)))(t)
	maps.Copy(r.Header, h)
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusTeapot {
		answer.Body.Close()
		return nil, failed
	}
	return answer, err
}
