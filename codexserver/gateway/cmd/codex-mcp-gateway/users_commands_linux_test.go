package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/shellword"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
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

// secrets are what the gateway has in a folder that users could see.
type secrets struct {
	dir, seed string
	service   string // codex-mcp-gateway.toml
	nats      *part
}

// newSecrets starts a NATS server that wants a certificate, and makes credentials for it.
func newSecrets(t *testing.T) *secrets {
	t.Helper()
	s := &secrets{dir: boxtest.Outside(t)}
	key, creds := filepath.Join(s.dir, "key.pem"), filepath.Join(s.dir, "creds")
	writeCertificate(t, key)
	s.nats = newNATS(t, t.TempDir(), key, "")
	account := must.Get(nkeys.CreateAccount())(t)
	s.seed = clustertest.Credentials(t, creds, account, time.Time{}) // which this server does not ask for
	boxtest.Lay(t, s.dir, "creds.link -> @/creds")
	s.service = fmt.Sprintf("nats={url='tls://%s', ca=%[2]q, cert=%[2]q, key=%[2]q, credentials='%s.link', lease='60s'}\n", s.nats.url, key, creds) +
		fmt.Sprintf("link={address = %q}\n", freeAddress(t))
	return s
}

// tryCommands checks that commands of ann cannot reach files and processes of bob or of the server, nor NATS, as an approved
// command runs: without a sandbox, which would only take more away.
func (u *users) tryCommands(model *providertest.Server, s *secrets) {
	u.t.Helper()
	run := func(user, text string) (output string) {
		u.t.Helper()
		if status, body, err := u.as(user).call("run " + text); status != 200 || err != nil || !strings.Contains(body, "the answer to run") {
			u.t.Fatalf("%s: %d %s %v", user, status, body, err)
		}
		requests := model.Requests()
		return requests[len(requests)-1].LastToolOutput()
	}
	run("bob", "echo secret of bob >/tmp/of-bob")
	run("ann", "true") // her worker runs before the processes are listed
	var all strings.Builder
	for name, value := range map[string]string{
		"ANN": u.work["ann"], "BOB": u.work["bob"], "SERVER": u.home, "TOP": u.top, "CREDS": s.dir + "/creds", "KEY": s.dir + "/key.pem",
	} {
		fmt.Fprintf(&all, "export %s=%s\n", name, shellword.Quote(value))
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
	must.Equal(u.t, "what a command of ann can", []string{"own read", "own write", "own home", "own temporary file"}, got)
	for _, secret := range []string{"secret of bob", "secret of the server", "sha256:", "secret of NATS", s.seed, "PRIVATE KEY"} {
		if strings.Contains(output, secret) || secret != "secret of bob" && strings.Contains(u.errors(), secret) {
			u.t.Errorf("the output or the log has %.20s", secret)
		}
	}
	for _, path := range []string{"/tmp/new", "/tmp/of-bob"} {
		if _, err := os.Lstat(path); err == nil {
			u.t.Errorf("it made %s", path)
		}
	}
	u.sharesNoConnection(s.nats.url)
}

// sharesNoConnection checks that no worker has a socket of the gateway that is connected to an address.
func (u *users) sharesNoConnection(address string) {
	u.t.Helper()
	text := must.Get(os.ReadFile("/proc/net/tcp"))(u.t)
	to, own := netip.MustParseAddrPort(address), ""
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); strings.HasSuffix(f[2], fmt.Sprintf(":%04X", to.Port())) {
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
