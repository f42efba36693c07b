package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/natstest"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// natsProbes try to use the gateway's connection to NATS.
var natsProbes = []probe{
	{"own port", `test -n "$PORT"`},
	{"read the credentials", `grep . $CREDS`},
	{"read the credentials by a link", `grep . $CREDS.link`},
	{"read the key", `grep . $KEY`},
	{"read the settings", `ls $SERVER/codex-mcp-gateway.toml || ls $SERVER/config.toml`},
	{"read the variables", `env | grep -E '^(NATS|NKEYS)_'`},
	{"read the variables of the worker", `tr '\0' '\n' </proc/$WORKER/environ | grep -E '^(NATS|NKEYS)_'`},
	{"read the command line of the gateway", `cat /proc/$FRONT/cmdline`},
	{"use a descriptor of the gateway", `ls /proc/$FRONT/fd/`},
	{"use a descriptor of the worker", `ls /proc/$WORKER/fd/* >/dev/null && readlink /proc/$WORKER/fd/*`},
	{"use an inherited descriptor", `for f in /proc/self/fd/*; do case $f in */[012]) ;; *) readlink $f;; esac; done | grep -E 'socket|pipe'`},
	{"find an abstract socket", `awk '{ print $8 }' /proc/net/unix | grep -iE '^@.*(codex|nats)'`},
	{"ask without credentials", natsClient(`None`)},
	{"ask with a certificate of its own", natsClient(`"/own.pem"`)},
}

// natsClient returns a command that succeeds if it can connect to NATS with a certificate, which is in
// the user's folder, or None.
func natsClient(certificate string) string {
	return `python3 -c '
import os, socket, ssl
s = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 5)
s.settimeout(5)
assert s.recv(4096).startswith(b"INFO")
c = ssl._create_unverified_context()
if ` + certificate + `: c.load_cert_chain(os.environ["ANN"] + ` + certificate + `)
s = c.wrap_socket(s)
s.sendall(b"CONNECT {\"verbose\":false}\r\nPING\r\n")
assert b"PONG" in s.recv(4096)'`
}

// startSecureNATS starts a NATS server that wants the certificate in a file, and returns its port.
func startSecureNATS(t *testing.T, file string) (*server.Server, int) {
	t.Helper()
	text := certificate(t)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	s := natstest.Start(t, server.Options{
		JetStream: true, TLS: true, TLSVerify: true, TLSTimeout: 5,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12},
	})
	return s, s.Addr().(*net.TCPAddr).Port
}

// TestEndToEndNATSOutOfReach lets commands without a sandbox, and with the network, look for the
// gateway's connection to NATS. They find its port, and nothing to use it with.
func TestEndToEndNATSOutOfReach(t *testing.T) {
	model := newCommander(t)
	secrets, err := os.MkdirTemp(".", "nats") // a folder that users can see
	if err == nil {
		secrets, err = filepath.Abs(secrets)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(secrets) })
	key, creds := filepath.Join(secrets, "key.pem"), filepath.Join(secrets, "creds")
	nats, port := startSecureNATS(t, key)
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed := natstest.Credentials(t, creds, account, time.Time{}) // which this server does not ask for
	if err := os.Symlink(creds, creds+".link"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NATS_CREDS", "secret of NATS")
	t.Setenv("NATS_PASSWORD", "secret of NATS")
	t.Setenv("NKEYS_PATH", "secret of NATS")
	u := startUsers(t, model.Server, "", "-c", "approval_policy=never", "-c", "sandbox_mode=danger-full-access", "-c", "nats.url=tls://127.0.0.1:"+strconv.Itoa(port),
		"-c", "nats.ca="+key, "-c", "nats.cert="+key, "-c", "nats.key="+key, "-c", "nats.credentials="+creds+".link", "-c", "nats.lease=60s", "-c", "link={address = '127.0.0.1:0', listen = '127.0.0.1:0'}")
	if err := os.WriteFile(filepath.Join(u.work["ann"], "own.pem"), certificate(t), 0o600); err != nil {
		t.Fatal(err)
	}
	model.run(u, "ann", "true") // her worker runs before it is looked for
	output, got := model.probe(u, map[string]any{"PORT": port, "CREDS": creds, "KEY": key, "SERVER": u.f.home, "FRONT": u.cmd.Process.Pid, "ANN": u.work["ann"]}, natsProbes)
	if diff := cmp.Diff([]string{"own port"}, got); diff != "" {
		t.Errorf("a command can (-want +got):\n%s\n%s", diff, output)
	}
	for _, secret := range []string{"secret of NATS", seed, "PRIVATE KEY"} {
		if strings.Contains(output, secret) || strings.Contains(u.errors(), secret) {
			t.Errorf("the output or the log has %.20s…", secret)
		}
	}
	if n := nats.NumClients(); n != 1 {
		t.Errorf("%d connections to NATS, want that of the gateway", n)
	}
	u.workersHaveNoConnection(port)
}

// workersHaveNoConnection checks that no worker has a connection over the network to a port.
func (u *users) workersHaveNoConnection(port int) {
	t := u.t
	t.Helper()
	inodes := map[string]bool{}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && strings.HasSuffix(f[2], fmt.Sprintf(":%04X", port)) {
				inodes["socket:["+f[9]+"]"] = true
			}
		}
	}
	if len(inodes) != 1 {
		t.Errorf("%d connections to the port of NATS, want one", len(inodes))
	}
	owners := 0
	for _, pid := range append(u.children(), u.cmd.Process.Pid) {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && inodes[to] {
				owners++
				if pid != u.cmd.Process.Pid {
					t.Errorf("the worker %d has the connection to NATS", pid)
				}
			}
		}
	}
	if want := 1; os.Geteuid() == 0 && owners != want { // others cannot read the descriptors of the gateway
		t.Errorf("%d processes have the connection, want %d", owners, want)
	}
}
