// Package linktest makes certificates of fronts and nodes for tests.
package linktest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
)

// Service is the name of the service.
const Service = "gateway.example.com"

// Authority signs certificates.
type Authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New returns an authority.
func New(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir()}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = a.write("ca", about)
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

func (a *Authority) write(file string, about *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if about.NotAfter.IsZero() {
		about.NotBefore, about.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	}
	about.SerialNumber = big.NewInt(time.Now().UnixNano())
	about.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	parent, signer := about, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, about, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(a.dir, file+name), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return cert, key
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
