package broker_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/natstest"
	"github.com/codexmcp/codexmcp/internal/certtest"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// tlsPatience bounds each wait. Only a failing test reaches it.
const tlsPatience = 20 * time.Second

// authority signs certificates.
type authority struct {
	t   *testing.T
	dir string
	*certtest.Authority
}

func newAuthority(t *testing.T, dir, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: dir}
	a.Authority = a.sign(name, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign writes NAME.pem and NAME.key.
func (a *authority) sign(name string, about *x509.Certificate) *certtest.Authority {
	a.t.Helper()
	about.Subject.CommonName = name
	about.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	cert, key, as := a.Issue(a.t, about)
	for file, text := range map[string][]byte{name + ".pem": cert, name + ".key": key} {
		if err := os.WriteFile(filepath.Join(a.dir, file), text, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return as
}

func (a *authority) path(file string) string { return filepath.Join(a.dir, file) }

// serverCertificate signs a certificate of a server, and returns the configuration for it.
func (a *authority) serverCertificate(name string, about *x509.Certificate, verify bool) *tls.Config {
	a.t.Helper()
	a.sign(name, about)
	pair, err := tls.LoadX509KeyPair(a.path(name+".pem"), a.path(name+".key"))
	if err != nil {
		a.t.Fatal(err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if verify {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		c.ClientCAs.AddCert(a.Cert)
	}
	return c
}

// operator makes the accounts of a server, and credentials for their users.
type operator struct {
	t      *testing.T
	dir    string
	key    nkeys.KeyPair
	claims *jwt.OperatorClaims
	all    *server.MemAccResolver
	system string
}

func public(t *testing.T, key nkeys.KeyPair, err error) (nkeys.KeyPair, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	name, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key, name
}

func newOperator(t *testing.T, dir string) *operator {
	t.Helper()
	o := &operator{t: t, dir: dir, all: &server.MemAccResolver{}}
	key, err := nkeys.CreateOperator()
	var name string
	o.key, name = public(t, key, err)
	o.claims = jwt.NewOperatorClaims(name)
	_, o.system = o.account("SYS", false)
	return o
}

// account makes an account with JetStream.
func (o *operator) account(name string, stream bool) (nkeys.KeyPair, string) {
	o.t.Helper()
	made, err := nkeys.CreateAccount()
	key, id := public(o.t, made, err)
	claims := jwt.NewAccountClaims(id)
	claims.Name = name
	if stream {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	}
	text, err := claims.Encode(o.key)
	if err == nil {
		err = o.all.Store(id, text)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	return key, id
}

// user writes a file with credentials of a new user, and returns its seed.
func (o *operator) user(file string, account nkeys.KeyPair, expires time.Time) (seed string) {
	o.t.Helper()
	return natstest.Credentials(o.t, filepath.Join(o.dir, file), account, expires)
}

// serveNATS starts a server that listens on loopback, with these accounts unless o is nil.
func serveNATS(t *testing.T, c *tls.Config, o *operator) (address string) {
	t.Helper()
	options := server.Options{JetStream: true}
	if c != nil {
		options.TLS, options.TLSConfig, options.TLSTimeout = true, c, 5
		options.TLSVerify = c.ClientAuth == tls.RequireAndVerifyClientCert
	}
	if o != nil {
		options.TrustedOperators, options.AccountResolver, options.SystemAccount = []*jwt.OperatorClaims{o.claims}, o.all, o.system
	}
	return natstest.Start(t, options).Addr().(*net.TCPAddr).AddrPort().String()
}

// journal keeps a log.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// TestConnectSecurely connects to a server with TLS, client certificates and accounts: with the
// right files, and with each of them wrong. An error names the key of the configuration, and
// neither it nor the log has a secret.
func TestConnectSecurely(t *testing.T) {
	dir := t.TempDir()
	local := &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	ca, other := newAuthority(t, dir, "ca"), newAuthority(t, dir, "other-ca")
	ca.sign("client", &x509.Certificate{})
	ca.sign("old-client", &x509.Certificate{NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	other.sign("other-client", &x509.Certificate{})
	o := newOperator(t, dir)
	account, _ := o.account("A", true)
	stranger := newOperator(t, dir)
	theirs, _ := stranger.account("A", true)
	secrets := []string{o.user("right.creds", account, time.Time{}), stranger.user("other.creds", theirs, time.Time{}), o.user("old.creds", account, time.Now().Add(-time.Hour))}
	right, err := os.ReadFile(filepath.Join(dir, "right.creds"))
	if err != nil {
		t.Fatal(err)
	}
	beginning, _, _ := bytes.Cut(right, []byte("-----BEGIN USER NKEY SEED-----"))
	for file, text := range map[string][]byte{"cut.creds": beginning, "wrong.creds": []byte("password: SECRET"), "wrong.pem": []byte("SECRET")} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"client.key", "other-client.key"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, strings.Split(string(text), "\n")[1])
	}
	secrets = append(secrets, "SECRET")
	servers := map[string]string{
		"all":     serveNATS(t, ca.serverCertificate("server", local, true), o),
		"no-mtls": serveNATS(t, ca.serverCertificate("server2", local, false), o),
		"expired": serveNATS(t, ca.serverCertificate("server3", &x509.Certificate{IPAddresses: local.IPAddresses, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}, true), o),
		"name":    serveNATS(t, ca.serverCertificate("server4", &x509.Certificate{DNSNames: []string{"nats.example.com"}, Subject: pkix.Name{}}, true), o),
		"plain":   serveNATS(t, nil, o),
		"open":    serveNATS(t, nil, nil),
	}
	for _, tt := range []struct {
		name, scheme, server, ca, cert, key, credentials string
		want                                             string // "" if it connects
	}{
		{"all right", "tls", "all", "ca.pem", "client.pem", "client.key", "right.creds", ""},
		{"the certificates of nats.ca ask for TLS", "nats", "all", "ca.pem", "client.pem", "client.key", "right.creds", ""},
		{"no client certificate is wanted", "tls", "no-mtls", "ca.pem", "", "", "right.creds", ""},
		{"no TLS on loopback", "nats", "plain", "", "", "", "right.creds", ""},
		{"another authority", "tls", "all", "other-ca.pem", "client.pem", "client.key", "right.creds", "nats.ca"},
		{"no authority", "tls", "no-mtls", "", "", "", "right.creds", "nats.ca"},
		{"an expired server", "tls", "expired", "ca.pem", "client.pem", "client.key", "right.creds", "nats.ca"},
		{"another name", "tls", "name", "ca.pem", "client.pem", "client.key", "right.creds", "nats.url"},
		{"no client certificate", "tls", "all", "ca.pem", "", "", "right.creds", "nats.cert"},
		{"a client certificate of another authority", "tls", "all", "ca.pem", "other-client.pem", "other-client.key", "right.creds", "nats.cert"},
		{"an expired client certificate", "tls", "all", "ca.pem", "old-client.pem", "old-client.key", "right.creds", "nats.cert"},
		{"the key of another", "tls", "all", "ca.pem", "client.pem", "other-client.key", "right.creds", "nats.cert, nats.key"},
		{"no key", "tls", "all", "ca.pem", "client.pem", "missing.key", "right.creds", "nats.cert, nats.key"},
		{"no certificates in the file", "tls", "all", "wrong.pem", "client.pem", "client.key", "right.creds", "nats.ca"},
		{"no file of authorities", "tls", "all", "missing.pem", "client.pem", "client.key", "right.creds", "nats.ca"},
		{"no credentials", "tls", "all", "ca.pem", "client.pem", "client.key", "", "nats.credentials"},
		{"credentials of another operator", "tls", "all", "ca.pem", "client.pem", "client.key", "other.creds", "nats.credentials"},
		{"expired credentials", "tls", "all", "ca.pem", "client.pem", "client.key", "old.creds", "nats.credentials"},
		{"credentials without a seed", "tls", "all", "ca.pem", "client.pem", "client.key", "cut.creds", "nats.credentials"},
		{"another file as credentials", "tls", "all", "ca.pem", "client.pem", "client.key", "wrong.creds", "nats.credentials"},
		{"a key as credentials", "tls", "all", "ca.pem", "client.pem", "client.key", "client.key", "nats.credentials"},
		{"no file of credentials", "tls", "all", "ca.pem", "client.pem", "client.key", "missing.creds", "nats.credentials"},
		{"a server without TLS", "tls", "plain", "ca.pem", "", "", "right.creds", "nats.url"},
		{"TLS of nats.ca with a server without", "nats", "plain", "ca.pem", "", "", "right.creds", "nats.url"},
		{"nobody listens", "nats", "", "", "", "", "right.creds", "nats.url"},
		{"a server without accounts", "nats", "open", "", "", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log journal
			at := func(file string) string {
				if file == "" {
					return ""
				}
				return filepath.Join(dir, file)
			}
			address := servers[tt.server]
			if tt.server == "" {
				address = "127.0.0.1:1"
			}
			b, err := broker.Connect(broker.Options{
				URL: tt.scheme + "://" + address, CA: at(tt.ca), Cert: at(tt.cert), Key: at(tt.key), Credentials: at(tt.credentials), Name: "test", Logger: log.logger(),
			})
			if err == nil {
				defer b.Close()
				if tt.want == "" {
					if _, err := b.Stream.AccountInfo(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), "connect to NATS: "+tt.want) && !strings.Contains(err.Error(), ", "+tt.want+":") {
				t.Errorf("%v, want %q", err, tt.want)
			}
			told := log.String()
			if warned := strings.Contains(told, "wants no credentials"); warned != (tt.server == "open") {
				t.Errorf("the log: %s", told)
			}
			if err != nil {
				told += err.Error()
			}
			for _, secret := range secrets {
				if strings.Contains(told, secret) {
					t.Errorf("a secret is in: %s", told)
				}
			}
		})
	}
}

// TestRenewedCredentials lets the credentials of a connection expire. When the file has new ones,
// the connection is made again.
func TestRenewedCredentials(t *testing.T) {
	dir := t.TempDir()
	o := newOperator(t, dir)
	account, _ := o.account("A", true)
	o.user("creds", account, time.Now().Add(4*time.Second))
	var log journal
	b, err := broker.Connect(broker.Options{URL: "nats://" + serveNATS(t, nil, o), Credentials: filepath.Join(dir, "creds"), Name: "test", Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(tlsPatience); !ok(); <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s:\n%s", what, log.String())
			}
		}
	}
	until("the server does not refuse them again and again", func() bool { return strings.Count(strings.ToLower(log.String()), "authorization violation") >= 3 })
	o.user("creds", account, time.Time{})
	until("no connection with the new file", b.Conn.IsConnected)
	if _, err := b.Stream.AccountInfo(t.Context()); err != nil {
		t.Error(err)
	}
}
