// Package certtest makes certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// Authority signs certificates. With nil each certificate signs itself.
type Authority struct {
	// Cert is the authority's own certificate.
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Issue signs a certificate with a new key for what about says, by default from an hour ago for two hours. It returns
// both as PEM, and the authority that the certificate is if about says that it is one.
func (a *Authority) Issue(t testing.TB, about *x509.Certificate) (cert, key []byte, as *Authority) {
	t.Helper()
	if about.SerialNumber == nil {
		about.SerialNumber = big.NewInt(time.Now().UnixNano())
	}
	if about.NotAfter.IsZero() {
		about.NotBefore, about.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	signer := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	by := a
	if by == nil {
		by = &Authority{about, signer}
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, about, by.Cert, signer.Public(), by.key))(t)
	private := must.Get(x509.MarshalPKCS8PrivateKey(signer))(t)
	made := must.Get(x509.ParseCertificate(der))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), &Authority{made, signer}
}

// New returns a certificate for loopback and a name, which signs itself and is its own authority, and its key.
func New(t testing.TB, name string) (cert, key []byte) {
	t.Helper()
	var self *Authority
	cert, key, _ = self.Issue(t, &x509.Certificate{DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true})
	return cert, key
}
