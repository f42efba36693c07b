package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/natstest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/shellword"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// users is a codex-mcp http with the principals ann and bob, and their folders and tokens.
type users struct {
	*httpServer
	f      folders
	tokens map[string]string
	work   map[string]string // the folder of each
	home   map[string]string
}

// startUsers starts a server for ann and bob, if this system can keep them apart.
func startUsers(t *testing.T, model *providertest.Server, more string, args ...string) *users {
	t.Helper()
	enclosuretest.Need(t)
	top := boxtest.Outside(t)
	u := &users{
		f: folders{home: top + "/server", cwd: top, user: top + "/user"}, tokens: map[string]string{},
		work: map[string]string{"ann": top + "/ann", "bob": top + "/bob"}, home: map[string]string{},
	}
	var settings strings.Builder
	fmt.Fprintf(&settings, "%s\n[approvals]\nlog = %q\n", more, top+"/approvals")
	for _, dir := range []string{u.f.home, u.f.user} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, dir := range u.work {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		token, hash := access.NewToken()
		u.tokens[name], u.home[name] = token, filepath.Join(u.f.home, "codex-mcp", "principals", name)
		fmt.Fprintf(&settings, "\n[http.principals.%s]\ntokens = [%q]\nfolders = [%q]\n", name, hash, dir)
	}
	for name, text := range map[string]string{
		u.work["ann"] + "/secret.txt": "secret of ann\n", u.work["bob"] + "/secret.txt": "secret of bob\n",
		u.f.home + "/auth.json": `{"OPENAI_API_KEY":"secret of the server"}`, u.f.home + "/codex-mcp.toml": settings.String(),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u.httpServer = startHTTP(t, u.f, model, args...)
	return u
}

// as returns the server with the token of a user.
func (u *users) as(name string) *httpServer {
	s := *u.httpServer
	s.token = u.tokens[name]
	return &s
}

// ask sends a request of MCP 2026-07-28 with these params, and adds their metadata.
func (s *httpServer) ask(method, name, params string) (status int, body string) {
	s.t.Helper()
	return s.askAt(mcpPath, `"extensions":{"io.modelcontextprotocol/tasks":{}}`, method, name, params)
}

// askAt is ask for a path and a client with these capabilities.
func (s *httpServer) askAt(path, capabilities, method, name, params string) (status int, body string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{`+capabilities+`}}}}`))
	if err != nil {
		s.t.Fatal(err)
	}
	for header, value := range map[string]string{
		"Authorization": "Bearer " + s.token, "Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		r.Header.Set(header, value)
	}
	servertest.MirrorThread(r, params)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(read)
}

// member returns the value of the first string member with a name.
func member(t *testing.T, body, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(body, `"`+name+`":"`)
	if !ok {
		t.Fatalf("no %s in %s", name, body)
	}
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

// probe is an attempt of a command of ann. Only those whose name begins with own must succeed.
type probe struct{ name, script string }

// probes look for what is of bob and of the server, and for the gateway's connection to NATS.
var probes = []probe{
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
	{"own read", `cat $ANN/secret.txt`},
	{"own write", `echo more >$ANN/new`},
	{"own home", `test -d $SERVER/codex-mcp/principals/ann/sessions`},
	{"own temporary file", `echo more >/tmp/new`},
	{"read a folder", `cat $BOB/secret.txt`},
	{"list a folder", `ls -d $BOB/*`},
	{"write a folder", `echo more >$BOB/new`},
	{"write beside", `echo more >$TOP/new`},
	{"read a home", `cat $SERVER/codex-mcp/principals/bob/config.toml`},
	{"list the homes", `ls -d $SERVER/codex-mcp/principals/bob`},
	{"read rollouts", `find $TOP -path "*/principals/bob/*" -name "*.jsonl" 2>/dev/null | grep .`},
	{"read a temporary file", `cat /tmp/of-bob`},
	{"read a shared one", `cat /var/tmp/of-bob`},
	{"read the hashes", `cat $SERVER/codex-mcp.toml`},
	{"read the data of NATS", `ls $SERVER/codex-mcp/nats`},
	{"read the key", `cat $SERVER/auth.json`},
	{"read the record", `grep . $TOP/approvals`},
	{"read a descriptor", `cat /proc/$WORKER/fd/*`},
	{"read the environment of the server", `cat /proc/$FRONT/environ`},
	{"read the environment of the worker", `cat /proc/$WORKER/environ`},
	{"read the memory of the worker", `dd if=/proc/$WORKER/mem count=1`},
	{"read the root of the server", `cat /proc/$FRONT/root$BOB/secret.txt`},
	{"read the root of the worker", `ls /proc/$WORKER/root/`},
	{"see the server", `cat /proc/$FRONT/cmdline`},
	{"signal the server", `kill -0 $FRONT`},
	{"signal workers", `for p in $OTHERS; do kill -0 $p && exit; done; false`},
	{"unmount", `umount -l $BOB`},
	{"unmount in a namespace", `unshare -Urm umount -l $BOB`},
	{"mount again", `unshare -Urm sh -c "mount --rbind / /mnt && cat /mnt$BOB/secret.txt"`},
	{"write the rest again", `unshare -Urm sh -c "mount -o remount,rw,bind / && echo more >$TOP/new"`},
	{"enter", `nsenter -t 1 -m cat $BOB/secret.txt`},
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

// commander is a model that asks for one command, and then is done.
type commander struct {
	*providertest.Server
	script atomic.Value
}

func newCommander(t *testing.T) *commander {
	c := &commander{}
	c.Server = providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		if len(r.ToolOutputs()) > 0 {
			return providertest.Say("done")
		}
		return providertest.Call(providertest.Shell("c1", "sh", "-c", c.script.Load().(string)))
	}})
	t.Cleanup(c.Close)
	return c
}

// run lets a user run a script, and returns what it prints.
func (c *commander) run(u *users, user, script string) (output string) {
	u.t.Helper()
	c.script.Store(script)
	if status, body, err := u.as(user).call("go"); status != 200 || err != nil || !strings.Contains(body, "done") {
		u.t.Fatalf("%s: %d %s %v", user, status, body, err)
	}
	requests := c.Requests()
	return requests[len(requests)-1].LastToolOutput()
}

// probe lets ann make attempts with variables, and returns what they print and the names of those that succeed.
func (c *commander) probe(u *users, variables map[string]any, probes []probe) (output string, done []string) {
	u.t.Helper()
	var b strings.Builder
	for name, value := range variables {
		fmt.Fprintf(&b, "export %s=%s\n", name, shellword.Quote(fmt.Sprint(value)))
	}
	b.WriteString("export WORKER=$(pgrep -x -o -f codex-mcp-worker)\n")
	for _, probe := range probes {
		fmt.Fprintf(&b, "sh -c %s </dev/null && echo 'DONE: %s'\n", shellword.Quote(probe.script), probe.name)
	}
	output = c.run(u, "ann", b.String()+"true")
	for line := range strings.Lines(output) {
		if name, ok := strings.CutPrefix(line, "DONE: "); ok {
			done = append(done, strings.TrimSpace(name))
		}
	}
	return output, done
}

// secureNATS starts a NATS server that wants the certificate in a file, and returns its port and arguments of a gateway
// with credentials. They are in a folder that users could see.
func secureNATS(t *testing.T) (nats *server.Server, port int, key, creds, seed string, args []string) {
	t.Helper()
	secrets, err := os.MkdirTemp(".", "nats")
	if err == nil {
		secrets, err = filepath.Abs(secrets)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(secrets) })
	key, creds = filepath.Join(secrets, "key.pem"), filepath.Join(secrets, "creds")
	nats, port = startSecureNATS(t, key)
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed = natstest.Credentials(t, creds, account, time.Time{}) // which this server does not ask for
	if err := os.Symlink(creds, creds+".link"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"NATS_CREDS", "NATS_PASSWORD", "NKEYS_PATH"} {
		t.Setenv(name, "secret of NATS")
	}
	return nats, port, key, creds, seed, []string{
		"-c", "nats.url=tls://127.0.0.1:" + strconv.Itoa(port), "-c", "nats.ca=" + key, "-c", "nats.cert=" + key, "-c", "nats.key=" + key, "-c", "nats.credentials=" + creds + ".link",
		"-c", "nats.lease=60s", "-c", "link={address = '127.0.0.1:0', listen = '127.0.0.1:0'}",
	}
}

// TestEndToEndUsersCommands checks that commands of ann cannot reach files and processes of
// bob or of the server, nor NATS, in a sandbox and without one, as an approved command runs.
func TestEndToEndUsersCommands(t *testing.T) {
	for _, mode := range []string{"read-only", "workspace-write", "danger-full-access"} {
		t.Run(mode, func(t *testing.T) {
			nats, port, key, creds, seed, args := secureNATS(t)
			model := newCommander(t)
			u := startUsers(t, model.Server, "", append(args, "-c", "approval_policy=never", "-c", "sandbox_mode="+mode)...)
			if err := os.WriteFile(filepath.Join(u.work["ann"], "own.pem"), certificate(t), 0o600); err != nil {
				t.Fatal(err)
			}
			model.run(u, "bob", "echo secret of bob >/tmp/of-bob")
			model.run(u, "ann", "true") // her worker runs before the processes are listed
			output, got := model.probe(u, map[string]any{
				"ANN": u.work["ann"], "BOB": u.work["bob"], "SERVER": u.f.home, "TOP": filepath.Dir(u.f.home), "FRONT": u.cmd.Process.Pid,
				"OTHERS": strings.Trim(fmt.Sprint(u.children()), "[]"), "PORT": port, "CREDS": creds, "KEY": key,
			}, probes)
			want := []string{"own port", "own read", "own write", "own home", "own temporary file"}
			if mode == "read-only" {
				want = []string{"own port", "own read", "own home"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("a command of ann can (-want +got):\n%s\n%s", diff, output)
			}
			for _, secret := range []string{"secret of bob", "secret of the server", "sha256:", "secret of NATS", seed, "PRIVATE KEY"} {
				if strings.Contains(output, secret) || secret != "secret of bob" && strings.Contains(u.errors(), secret) {
					t.Errorf("the output or the log has %.20s", secret)
				}
			}
			for _, path := range []string{u.work["bob"] + "/new", filepath.Dir(u.f.home) + "/new", "/tmp/new", "/tmp/of-bob"} {
				if _, err := os.Lstat(path); err == nil {
					t.Errorf("it made %s", path)
				}
			}
			if n := nats.NumClients(); n != 1 {
				t.Errorf("%d connections to NATS, want that of the gateway", n)
			}
			u.workersHaveNoConnection(port)
		})
	}
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
