package broker_test

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// serverTLS returns the configuration of a server with a certificate of an authority, which wants one of its clients.
func serverTLS(t *testing.T, a *clustertest.Authority, about *x509.Certificate) *tls.Config {
	t.Helper()
	files := a.Issue(about)
	pair := must.Get(tls.LoadX509KeyPair(files.Cert, files.Key))(t)
	clients := x509.NewCertPool()
	clients.AddCert(a.Cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
}

// operator returns options of a server that knows an account with JetStream, and the account.
func operator(t *testing.T) (o server.Options, account nkeys.KeyPair) {
	t.Helper()
	create := func(kind nkeys.PrefixByte) (nkeys.KeyPair, string) {
		t.Helper()
		key := must.Get(nkeys.CreatePair(kind))(t)
		return key, must.Get(key.PublicKey())(t)
	}
	signer, id := create(nkeys.PrefixByteOperator)
	all := &server.MemAccResolver{}
	o.TrustedOperators, o.AccountResolver = []*jwt.OperatorClaims{jwt.NewOperatorClaims(id)}, all
	for _, limits := range []jwt.JetStreamLimits{{}, {MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}} {
		account, id = create(nkeys.PrefixByteAccount)
		claims := jwt.NewAccountClaims(id)
		claims.Limits.JetStreamLimits = limits
		text := must.Get(claims.Encode(signer))(t)
		must.OK(t, all.Store(id, text))
		o.SystemAccount = cmp.Or(o.SystemAccount, id) // the first one
	}
	return o, account
}

func serveNATS(t *testing.T, c *tls.Config, o server.Options) (address string) {
	t.Helper()
	o.JetStream = true
	if c != nil {
		o.TLS, o.TLSVerify, o.TLSConfig, o.TLSTimeout = true, true, c, 5
	}
	return clustertest.Start(t, o).Addr().String()
}

// logger returns one that logs all to a journal.
func logger(to *servertest.Journal) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// TestConnectSecurely connects to a server with TLS, client certificates and accounts: with the
// right files, and with each of them wrong. An error names the key of the configuration, and
// neither it nor the log has a secret.
func TestConnectSecurely(t *testing.T) {
	dir := t.TempDir()
	ca, other := clustertest.NewAuthority(t), clustertest.NewAuthority(t)
	own, foreign := ca.Issue(&x509.Certificate{}), other.Issue(&x509.Certificate{})
	at := func(file string) string { return filepath.Join(dir, file) }
	o, account := operator(t)
	_, theirs := operator(t)
	right, foreignUser := at("right.creds"), at("other.creds")
	secrets := []string{
		clustertest.Credentials(t, right, account, time.Time{}), clustertest.Credentials(t, foreignUser, theirs, time.Time{}),
		"SECRET",
	}
	text := must.Get(os.ReadFile(right))(t)
	beginning, _, _ := strings.Cut(string(text), "-----BEGIN USER NKEY SEED-----")
	boxtest.Lay(t, dir, "cut.creds="+beginning, "wrong.creds=password: SECRET", "wrong.pem=SECRET")
	for _, file := range []string{own.Key, foreign.Key} {
		text := must.Get(os.ReadFile(file))(t)
		secrets = append(secrets, strings.Split(string(text), "\n")[1])
	}
	servers := map[string]string{
		"all":   serveNATS(t, serverTLS(t, ca, &x509.Certificate{}), o),
		"name":  serveNATS(t, serverTLS(t, ca, &x509.Certificate{DNSNames: []string{"nats.example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 2)}}), o),
		"plain": serveNATS(t, nil, o),
		"open":  serveNATS(t, nil, server.Options{}),
		"":      "127.0.0.1:1",
	}
	for _, tt := range []struct {
		name, scheme, server, ca, cert, key, credentials string
		want                                             string // "" if it connects
	}{
		{"all right", "tls", "all", own.CA, own.Cert, own.Key, right, ""},
		{"the certificates of nats.ca ask for TLS", "nats", "all", own.CA, own.Cert, own.Key, right, ""},
		{"another authority", "tls", "all", foreign.CA, own.Cert, own.Key, right, "nats.ca"},
		{"another name", "tls", "name", own.CA, own.Cert, own.Key, right, "nats.url"},
		{"no client certificate", "tls", "all", own.CA, "", "", right, "nats.cert"},
		{"a client certificate of another authority", "tls", "all", own.CA, foreign.Cert, foreign.Key, right, "nats.cert"},
		{"the key of another", "tls", "all", own.CA, own.Cert, foreign.Key, right, "nats.cert, nats.key"},
		{"no certificates in the file", "tls", "all", at("wrong.pem"), own.Cert, own.Key, right, "nats.ca"},
		{"no credentials", "tls", "all", own.CA, own.Cert, own.Key, "", "nats.credentials"},
		{"credentials of another operator", "tls", "all", own.CA, own.Cert, own.Key, foreignUser, "nats.credentials"},
		{"credentials without a seed", "tls", "all", own.CA, own.Cert, own.Key, at("cut.creds"), "nats.credentials"},
		{"another file as credentials", "tls", "all", own.CA, own.Cert, own.Key, at("wrong.creds"), "nats.credentials"},
		{"a server without TLS", "tls", "plain", own.CA, "", "", right, "nats.url"},
		{"nobody listens", "nats", "", "", "", "", right, "nats.url"},
		{"a server without accounts", "nats", "open", "", "", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log servertest.Journal
			b, err := broker.Connect(broker.Options{
				URL: tt.scheme + "://" + servers[tt.server], CA: tt.ca, Cert: tt.cert, Key: tt.key, Credentials: tt.credentials, Name: "test", Logger: logger(&log),
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
	t.Parallel()
	file := filepath.Join(t.TempDir(), "creds")
	o, account := operator(t)
	clustertest.Credentials(t, file, account, time.Now().Add(2*time.Second))
	var log servertest.Journal
	b := must.Get(broker.Connect(broker.Options{URL: "nats://" + serveNATS(t, nil, o), Credentials: file, Name: "test", Logger: logger(&log)}))(t)
	defer b.Close()
	clustertest.Until(t, "the server does not refuse them again and again", func() bool { return strings.Count(strings.ToLower(log.String()), "authorization violation") >= 3 })
	clustertest.Credentials(t, file, account, time.Time{})
	clustertest.Until(t, "no connection with the new file", b.Conn.IsConnected)
	if _, err := b.Stream.AccountInfo(t.Context()); err != nil {
		t.Error(err)
	}
}
