package link

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Certificates are files in PEM. Each side reads them again for each connection.
type Certificates struct {
	// CA has the certificates of the authorities that sign those of fronts and nodes.
	CA string
	// Cert and Key are the certificate of this process and its key. The first DNS name of the
	// certificate is that of the service: only who has it too is a front or a node.
	Cert, Key string
}

// Check fails if the others would refuse the certificate.
func (c Certificates) Check() error {
	_, err := c.config()
	return err
}

// config returns the configuration of both sides for one connection. Each side checks that the other one
// has a certificate of the authority, with the name of the service.
func (c Certificates) config() (*tls.Config, error) {
	if c.CA == "" || c.Cert == "" || c.Key == "" {
		return nil, errors.New("link.ca, link.cert, link.key: missing; fronts and nodes need them to connect to one " +
			"another, or nats.ca, nats.cert and nats.key")
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("link.cert, link.key: %w", err)
	}
	text, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("link.ca: %w", err)
	}
	ca := x509.NewCertPool()
	if !ca.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("link.ca: %s has no certificate", c.CA)
	}
	if len(pair.Leaf.DNSNames) == 0 {
		return nil, fmt.Errorf("link.cert: %s has no DNS name; the first one must be the same for all fronts and "+
			"nodes, and nobody else's", c.Cert)
	}
	name := pair.Leaf.DNSNames[0] // of the service
	between := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if more, err := x509.ParseCertificate(der); err == nil { // the others ignore it too
			between.AddCert(more)
		}
	}
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: ca, Intermediates: between, DNSName: name,
			KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
			return nil, fmt.Errorf("link.cert: the other fronts and nodes would refuse it: %w", err)
		}
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, SessionTicketsDisabled: true,
		Certificates: []tls.Certificate{pair}, ServerName: name, RootCAs: ca,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.VerifiedChains) == 0 {
				return errors.New("the certificate is not verified")
			}
			return s.PeerCertificates[0].VerifyHostname(name)
		},
	}, nil
}
