package httpserve

import (
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/internal/certtest"
)

// certify writes a certificate with a serial number that is valid around the time at, and its key.
func certify(t *testing.T, f *Flags, number int64, at time.Time) {
	t.Helper()
	var self *certtest.Authority
	cert, key, _ := self.Issue(t, &x509.Certificate{SerialNumber: big.NewInt(number), NotBefore: at.Add(-time.Hour), NotAfter: at.Add(time.Hour)})
	replace(t, f.Cert, cert)
	replace(t, f.Key, key)
}

func replace(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// served returns the serial number of the certificate that a client gets.
func served(t *testing.T, config *tls.Config) int64 {
	t.Helper()
	ours, theirs := net.Pipe()
	server := tls.Server(theirs, config)
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	client := tls.Client(ours, &tls.Config{InsecureSkipVerify: true})
	err := client.Handshake()
	if other := <-done; err != nil || other != nil {
		t.Fatalf("%v, %v", err, other)
	}
	ours.Close()
	theirs.Close()
	return client.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// TestCertificateIsReadAgain replaces the files while the server runs. The server must keep
// its certificate while the files are invalid or only one is replaced.
func TestCertificateIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := &Flags{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
		if _, err := f.config(); err == nil {
			t.Error("it starts without a certificate")
		}
		certify(t, f, 1, time.Now())
		config, err := f.config()
		if err != nil {
			t.Fatal(err)
		}
		old := &tls.Config{MaxVersion: tls.VersionTLS11, InsecureSkipVerify: true}
		ours, theirs := net.Pipe()
		go func() { _ = tls.Server(theirs, config).Handshake(); theirs.Close() }()
		if err := tls.Client(ours, old).Handshake(); err == nil {
			t.Error("TLS 1.1 is accepted")
		}
		ours.Close()
		for _, step := range []struct {
			name   string
			change func()
			want   int64
		}{
			{"nothing", func() {}, 1},
			{"others", func() { certify(t, f, 2, time.Now()) }, 2},
			{"a broken certificate", func() { replace(t, f.Cert, []byte("broken")) }, 2},
			{"others again", func() { certify(t, f, 3, time.Now()) }, 3},
			{"the key of another", func() {
				cert, err := os.ReadFile(f.Cert)
				if err != nil {
					t.Fatal(err)
				}
				certify(t, f, 4, time.Now())
				replace(t, f.Cert, cert)
			}, 3},
			{"no key", func() {
				if err := os.Remove(f.Key); err != nil {
					t.Fatal(err)
				}
			}, 3},
			{"others at last", func() { certify(t, f, 5, time.Now()) }, 5},
		} {
			<-time.After(readInterval)
			step.change()
			if got := served(t, config); got != step.want {
				t.Errorf("%s: certificate %d, want %d", step.name, got, step.want)
			}
		}
	})
}

// TestOnlyFrom checks that only the proxy's address is served, in each of its forms.
func TestOnlyFrom(t *testing.T) {
	for _, tt := range []struct {
		proxy, remote string
		status        int
	}{
		{"", "192.0.2.1:1", 204},
		{"192.0.2.1", "192.0.2.1:1", 204},
		{"192.0.2.1", "[::ffff:192.0.2.1]:1", 204},
		{"::ffff:192.0.2.1", "192.0.2.1:1", 204},
		{"2001:db8::1", "[2001:db8:0::1]:1", 204},
		{"192.0.2.1", "192.0.2.10:1", 403},
		{"192.0.2.1", "127.0.0.1:1", 403},
		{"127.0.0.1", "[::1]:1", 403},
		{"192.0.2.1", "192.0.2.1", 403},
		{"192.0.2.1", "", 403},
		{"fe80::1", "[fe80::1%eth0]:1", 403},
	} {
		h := onlyFrom(tt.proxy, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.RemoteAddr = tt.remote
		h.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%q from %q: %d, want %d", tt.proxy, tt.remote, w.Code, tt.status)
		}
	}
}
