package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// caVariable names a file with further certificates of authorities, in PEM format.
const caVariable = "CODEX_CA_CERTIFICATE"

// maxCertificates bounds that file.
const maxCertificates = 16 << 20

// HTTPClient returns a client that trusts the authorities of the system and those of the
// file that CODEX_CA_CERTIFICATE names. It has no timeout: a stream may last as long as data
// comes.
func HTTPClient(getenv func(string) string) (*http.Client, error) {
	// This is the default transport. Its Clone prepares HTTP/2, which can wait for a request.
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		WriteBufferSize:       1 << 10, // it has the headers; a body is written as it is
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   32,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			if answer.StatusCode != http.StatusOK {
				return &proxyError{answer.StatusCode}
			}
			return nil
		},
	}
	trusted, err := roots(getenv)
	if err != nil {
		return nil, err
	}
	if trusted != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t}, nil
}

// roots returns the authorities of the system and those of the file that CODEX_CA_CERTIFICATE
// names, or nil if it names none.
func roots(getenv func(string) string) (*x509.CertPool, error) {
	file := getenv(caVariable)
	if file == "" {
		return nil, nil
	}
	pem, err := safefile.Read(file, maxCertificates)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", caVariable, err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s has no certificate in PEM format", caVariable, file)
	}
	return roots, nil
}

// proxyError reports that a proxy answered, and does not connect.
type proxyError struct{ status int }

func (e *proxyError) Error() string { return statusLine(e.status) }
