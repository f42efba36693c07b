package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats-server/v2/server"
)

// onThePage returns the first block of README.md that has the words.
func onThePage(t *testing.T, words string) string {
	t.Helper()
	page := must.Get(os.ReadFile("../../README.md"))(t)
	for _, part := range strings.Split(string(page), "\n```")[1:] {
		if _, block, _ := strings.Cut(part, "\n"); strings.Contains(block, words) {
			return block
		}
	}
	t.Fatalf("README.md has no block with %q", words)
	return ""
}

// TestReadmeOneMachine types the commands of README.md for one machine. The user can connect with the token.
func TestReadmeOneMachine(t *testing.T) {
	t.Parallel()
	enclosuretest.Need(t)
	dir := filepath.Dir(gateway(t).Path)
	user := t.TempDir()
	script := strings.ReplaceAll(onThePage(t, "--new-token ann"), "/srv/codex", filepath.Join(user, "srv"))
	script, last, _ := strings.Cut(script, "\nCODEX_HOME=") // the last line, which starts the gateway: it takes the shell's place
	script = "PATH='" + dir + "':$PATH\n" + script + "\nexec env CODEX_HOME=" + last + " --engine native --listen 127.0.0.1:0"
	p := launch(t, user, "", exec.Command("sh", "-euc", script))
	c := client{t, servertest.HTTPClient{URL: p.serves()}}
	printed := must.Get(os.ReadFile(filepath.Join(user, "service", "ann.txt")))(t)
	c.Token, _, _ = strings.Cut(string(printed), "\n")
	if status, body := c.do("tools/call", "codex-list", `"name":"codex-list","arguments":{}`); status != 200 || !strings.Contains(p.errors(), "number of users: 1") {
		t.Errorf("status %d, %s", status, body)
	}
}

// TestReadmeThreeMachines makes the certificates of README.md, and reads the configuration of NATS with them.
func TestReadmeThreeMachines(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	cmd := exec.Command("sh", "-euc", onThePage(t, "openssl req"))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config := strings.NewReplacer("/etc/nats", dir, "/var/lib/nats", dir).Replace(onThePage(t, "server_name: m1"))
	file := filepath.Join(dir, "nats.conf")
	must.OK(t, os.WriteFile(file, []byte(config), 0o600))
	options := must.Get(server.ProcessConfigFile(file))(t)
	if options.TLSConfig == nil || options.Cluster.TLSConfig == nil || len(options.Routes) != 3 || options.StoreDir != dir {
		t.Errorf("%+v", options)
	}
}
