// Package linktest makes certificates of fronts and nodes for tests.
package linktest

import (
	"crypto/rand"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/internal/certtest"
)

// Service is the name of the service.
const Service = "gateway.example.com"

// Authority signs certificates.
type Authority struct {
	t   *testing.T
	dir string
	*certtest.Authority
}

// New returns an authority.
func New(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir()}
	a.Authority = a.write("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// Certificates returns the files of a front or a node of a new authority.
func Certificates(t *testing.T) link.Certificates {
	t.Helper()
	return New(t).Issue(&x509.Certificate{DNSNames: []string{Service}})
}

// Issue signs a certificate with a new key for what about says. It is valid now, unless about says when.
func (a *Authority) Issue(about *x509.Certificate) link.Certificates {
	a.t.Helper()
	file := rand.Text()
	a.write(file, about)
	return link.Certificates{CA: filepath.Join(a.dir, "ca.pem"), Cert: filepath.Join(a.dir, file+".pem"), Key: filepath.Join(a.dir, file+".key")}
}

func (a *Authority) write(file string, about *x509.Certificate) *certtest.Authority {
	a.t.Helper()
	about.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	cert, key, as := a.Authority.Issue(a.t, about)
	for name, text := range map[string][]byte{".pem": cert, ".key": key} {
		if err := os.WriteFile(filepath.Join(a.dir, file+name), text, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return as
}

// Listen returns a listener on loopback, and its address.
func Listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, l.Addr().String()
}
