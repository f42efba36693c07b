package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/shellword"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// probe is an attempt of a command of ann. Only those whose name begins with own must succeed.
type probe struct{ name, script string }

// probes look for what is of bob and of the server, and for what leads to NATS. TestEnclosure has the ways out of an
// enclosure.
var probes = []probe{
	{"read the credentials", `grep . $CREDS`},
	{"read the key", `grep . $KEY`},
	{"read the variables", `env | grep -E '^(NATS|NKEYS)_'`},
	{"use a descriptor of the worker", `ls /proc/$WORKER/fd/* >/dev/null && readlink /proc/$WORKER/fd/*`},
	{"use an inherited descriptor", `for f in /proc/self/fd/*; do case $f in */[012]) ;; *) readlink $f;; esac; done | grep -E 'socket|pipe'`},
	{"find an abstract socket", `awk '{ print $8 }' /proc/net/unix | grep -iE '^@.*(codex|nats)'`},
	{"own read", `cat $ANN/secret.txt`},
	{"own write", `echo more >$ANN/new`},
	{"own home", `test -d $SERVER/codex-mcp/principals/ann/sessions`},
	{"own temporary file", `echo more >/tmp/new`},
	{"read a folder", `cat $BOB/secret.txt`},
	{"read a home", `cat $SERVER/codex-mcp/principals/bob/config.toml`},
	{"read a temporary file", `cat /tmp/of-bob`},
	{"read the hashes", `cat $SERVER/codex-mcp.toml`},
	{"read the data of NATS", `ls $SERVER/codex-mcp/nats`},
	{"read the key of the model", `cat $SERVER/auth.json`},
	{"read the record", `grep . $TOP/approvals`},
	{"read the environment of the worker", `cat /proc/$WORKER/environ`},
	{"find a socket", `find $TOP /tmp /run -type s -path "*codex-mcp*" 2>/dev/null | grep .`},
	{"connect to a worker", `python3 -c "
import re, socket
paths = set(re.findall('\\S*(?:codex-mcp|worker-)\\S*', open('/proc/net/unix').read()))
assert paths
for path in paths:
    s = socket.socket(socket.AF_UNIX)
    if s.connect_ex(path) == 0:
        break
else:
    raise SystemExit(1)"`},
}

// secureNATS starts a NATS server that wants the certificate in a file, and returns its port, and settings and variables of
// a gateway with credentials. They are in a folder that users could see.
func secureNATS(t *testing.T) (port int, secrets, seed, service string, env []string) {
	t.Helper()
	secrets, err := os.MkdirTemp(".", "nats")
	if err == nil {
		secrets, err = filepath.Abs(secrets)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(secrets) })
	key, creds := filepath.Join(secrets, "key.pem"), filepath.Join(secrets, "creds")
	text := writeCertificate(t, key)
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	nats := clustertest.Start(t, server.Options{
		JetStream: true, TLS: true, TLSVerify: true, TLSTimeout: 5,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12},
	})
	port = nats.Addr().(*net.TCPAddr).Port
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed = clustertest.Credentials(t, creds, account, time.Time{}) // which this server does not ask for
	if err := os.Symlink(creds, creds+".link"); err != nil {
		t.Fatal(err)
	}
	return port, secrets, seed, fmt.Sprintf("nats={url='tls://127.0.0.1:%d', ca=%[2]q, cert=%[2]q, key=%[2]q, credentials='%s.link', lease='60s'}\n", port, key, creds) +
		"link={address = '127.0.0.1:0', listen = '127.0.0.1:0'}\n", []string{"NATS_CREDS=secret of NATS", "NATS_PASSWORD=secret of NATS", "NKEYS_PATH=secret of NATS"}
}

// TestEndToEndUsersCommands checks that commands of ann cannot reach files and processes of
// bob or of the server, nor NATS, as an approved command runs: without a sandbox, which would only take more away.
func TestEndToEndUsersCommands(t *testing.T) {
	t.Parallel()
	port, secrets, seed, service, env := secureNATS(t)
	var script atomic.Value
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		if len(r.ToolOutputs()) > 0 {
			return providertest.Say("done")
		}
		return providertest.Call(providertest.Shell("c1", "sh", "-c", script.Load().(string)))
	}})
	t.Cleanup(model.Close)
	u := startUsers(t, model, service, env, "-c", "approval_policy=never")
	run := func(user, text string) (output string) {
		t.Helper()
		script.Store(text)
		if status, body, err := u.as(user).call("go"); status != 200 || err != nil || !strings.Contains(body, "done") {
			t.Fatalf("%s: %d %s %v", user, status, body, err)
		}
		requests := model.Requests()
		return requests[len(requests)-1].LastToolOutput()
	}
	run("bob", "echo secret of bob >/tmp/of-bob")
	run("ann", "true") // her worker runs before the processes are listed
	var all strings.Builder
	for name, value := range map[string]any{
		"ANN": u.work["ann"], "BOB": u.work["bob"], "SERVER": u.home, "TOP": u.top, "CREDS": secrets + "/creds", "KEY": secrets + "/key.pem",
	} {
		fmt.Fprintf(&all, "export %s=%s\n", name, shellword.Quote(fmt.Sprint(value)))
	}
	all.WriteString("export WORKER=$(pgrep -x -o -f codex-mcp-worker)\n")
	for _, probe := range probes {
		fmt.Fprintf(&all, "sh -c %s </dev/null && echo 'DONE: %s'\n", shellword.Quote(probe.script), probe.name)
	}
	output := run("ann", all.String()+"true")
	var got []string
	for line := range strings.Lines(output) {
		if name, ok := strings.CutPrefix(line, "DONE: "); ok {
			got = append(got, strings.TrimSpace(name))
		}
	}
	if diff := cmp.Diff([]string{"own read", "own write", "own home", "own temporary file"}, got); diff != "" {
		t.Errorf("a command of ann can (-want +got):\n%s\n%s", diff, output)
	}
	for _, secret := range []string{"secret of bob", "secret of the server", "sha256:", "secret of NATS", seed, "PRIVATE KEY"} {
		if strings.Contains(output, secret) || secret != "secret of bob" && strings.Contains(u.errors(), secret) {
			t.Errorf("the output or the log has %.20s", secret)
		}
	}
	for _, path := range []string{"/tmp/new", "/tmp/of-bob"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("it made %s", path)
		}
	}
	u.sharesNoConnection(port)
}

// sharesNoConnection checks that no worker has a socket of the gateway that is connected to a port.
func (u *users) sharesNoConnection(port int) {
	u.t.Helper()
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		u.t.Fatal(err)
	}
	own := ""
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); strings.HasSuffix(f[2], fmt.Sprintf(":%04X", port)) {
			own = "socket:[" + f[9] + "]"
		}
	}
	if own == "" {
		u.t.Error("the gateway has no connection")
	}
	for _, pid := range u.children() {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && to == own {
				u.t.Errorf("the worker %d has the connection to NATS", pid)
			}
		}
	}
}
