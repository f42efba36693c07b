package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// TestStartFails checks that a gateway that cannot start says why, and that fronts do not find it. The packages of its
// parts test what else they refuse.
func TestStartFails(t *testing.T) {
	t.Parallel()
	enclosuretest.Need(t)
	nats, top, key := clustertest.Start(t, server.Options{JetStream: true}), boxtest.Outside(t), filepath.Join(t.TempDir(), "link.pem")
	_, js := clustertest.Connect(t, nats)
	tables, _ := newUsers(t, top, "ann")
	boxtest.Lay(t, top, "home/codex-mcp.toml="+tables, "ann/inner/", "link -> @/ann/inner")
	writeCertificate(t, key)
	url := fmt.Sprintf("nats.url = %q\n", nats.ClientURL())
	file := url + "link.listen = '127.0.0.1:0'\nlink.address = 'localhost:1'\n" + fmt.Sprintf("link.ca = %[1]q\nlink.cert = %[1]q\nlink.key = %[1]q\n", key)
	taken, absent := nats.Addr().String(), filepath.Join(top, "absent", "file")
	for name, tt := range map[string]struct {
		was, is string // of the file
		args    []string
		want    string
	}{
		"an app-server for all":        {"", "", []string{"--codex", "unix:///run/codex.sock"}, "--codex: "},
		"no folder for the record":     {"", "", []string{"-c", "approvals.log=" + absent}, "approvals.log: "},
		"no program":                   {"", "", []string{"--codex-mcp", absent}, "--codex-mcp: "},
		"no NATS":                      {nats.ClientURL(), "nats://127.0.0.1:1", nil, "nats.url: "},
		"an address of metrics in use": {"", "", []string{"-c", "http.metrics=" + taken}, "http.metrics: "},
		"an address in use":            {"", "", []string{"--listen", taken, "-c", "http.metrics=127.0.0.1:0"}, "address already in use"},
		"an address of links in use":   {"127.0.0.1:0", taken, nil, "link.listen: "},
		"no address for fronts":        {"localhost:1", "", nil, "link.address: missing"},
		"no certificate for fronts":    {file, url, nil, "link.ca, link.cert, link.key: missing"},
		"a link into another's folder": {"", "", []string{"-c", "http.principals.bob={tokens=['sha256:" + strings.Repeat("b", 64) + "'], folders=['" + top + "/link']}"}, "lies in " + top + "/ann of ann"},
	} {
		t.Run(name, func(t *testing.T) {
			boxtest.Lay(t, top, "home/codex-mcp-gateway.toml="+strings.Replace(file, tt.was, tt.is, 1))
			p := launch(t, top, top+"/home", gateway(t, append([]string{"--engine", "native", "--listen", "127.0.0.1:0"}, tt.args...)...))
			if code := p.wait(); code != 1 || !strings.Contains(p.errors(), tt.want) || strings.Contains(p.errors(), "serving MCP") {
				t.Errorf("status %d: %.300s, want %q", code, p.errors(), tt.want)
			}
			if bucket, err := js.KeyValue(t.Context(), placement.Bucket); !errors.Is(err, jetstream.ErrBucketNotFound) {
				must.OK(t, err)
				must.Equal(t, "the nodes", 0, len(must.Get(placement.New(bucket).All(t.Context()))(t)))
			}
		})
	}
}

// TestEndToEndRefused checks that the gateway does not start where it cannot keep users apart.
func TestEndToEndRefused(t *testing.T) {
	t.Parallel()
	enclosuretest.Need(t)
	top := boxtest.Outside(t)
	tables, _ := newUsers(t, top, "ann")
	boxtest.Lay(t, top, "home/codex-mcp.toml="+tables)
	const script = `echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" "$@"`
	args := append([]string{"-Ur", "sh", "-c", script}, gateway(t, "--engine", "native", "--listen", "127.0.0.1:0").Args...)
	p := launch(t, top, top+"/home", exec.Command("unshare", args...))
	if code := p.wait(); code != 1 || !strings.Contains(p.errors(), "cannot keep several users apart") || strings.Contains(p.errors(), "serving MCP") {
		t.Errorf("status %d: %s", code, p.errors())
	}
}
