package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// ownProcess runs gateways in the process of the test, with a NATS server.
type ownProcess struct {
	nats *server.Server
	js   jetstream.JetStream
	top  string // has all folders
	args []string
	file string // codex-mcp-gateway.toml
}

func newOwnProcess(t *testing.T) *ownProcess {
	t.Helper()
	enclosuretest.Need(t)
	o := &ownProcess{nats: clustertest.Start(t, server.Options{JetStream: true}), top: boxtest.Outside(t)}
	_, o.js = clustertest.Connect(t, o.nats)
	const unused = "/bin/true" // no worker starts, but the gateway tries the program
	tables, _ := newUsers(t, o.top, "ann")
	boxtest.Lay(t, o.top, "home/codex-mcp.toml="+tables, "ann/inner/", "link -> @/ann/inner")
	t.Setenv("CODEX_HOME", filepath.Join(o.top, "home"))
	o.args = []string{"--engine", "native", "--listen", "127.0.0.1:0", "--codex-mcp", unused}
	file := filepath.Join(t.TempDir(), "link.pem")
	writeCertificate(t, file)
	o.file = fmt.Sprintf("nats.url = %q\nnode.name = 'n'\nlink.ca = %[2]q\nlink.cert = %[2]q\nlink.key = %[2]q\nlink.listen = '127.0.0.1:0'\nlink.address = 'localhost:0'\n", o.nats.ClientURL(), file)
	return o
}

// published returns how many nodes the service has.
func (o *ownProcess) published(t *testing.T) int {
	t.Helper()
	bucket, err := o.js.KeyValue(t.Context(), placement.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return 0
	} else if err != nil {
		t.Fatal(err)
	}
	all, err := placement.New(bucket).All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// start starts a gateway with a file of its process and more arguments. It serves until stop.
func (o *ownProcess) start(t *testing.T, file string, args ...string) (p *process, stop func()) {
	boxtest.Lay(t, o.top, "home/codex-mcp-gateway.toml="+file)
	ctx, cancel := context.WithCancel(t.Context())
	p = &process{t: t, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		p.code = run(ctx, slices.Concat(o.args, args), io.Discard, &p.stderr)
	}()
	t.Cleanup(func() { cancel(); <-p.exited })
	return p, cancel
}

// TestStartFails checks that a gateway that cannot start says why, and that fronts do not find it. The packages of its
// parts test what else they refuse.
func TestStartFails(t *testing.T) {
	o := newOwnProcess(t)
	taken, absent := o.nats.Addr().String(), filepath.Join(o.top, "absent", "file")
	for name, tt := range map[string]struct {
		was, is string // of the file
		args    []string
		want    string
	}{
		"an app-server for all":        {"", "", []string{"--codex", "unix:///run/codex.sock"}, "--codex: "},
		"no folder for the record":     {"", "", []string{"-c", "approvals.log=" + absent}, "approvals.log: "},
		"no program":                   {"", "", []string{"--codex-mcp", absent}, "--codex-mcp: "},
		"no NATS":                      {o.nats.ClientURL(), "nats://127.0.0.1:1", nil, "nats.url: "},
		"an address of metrics in use": {"", "", []string{"-c", "http.metrics=" + taken}, "http.metrics: "},
		"an address in use":            {"", "", []string{"--listen", taken, "-c", "http.metrics=127.0.0.1:0"}, "address already in use"},
		"an address of links in use":   {"127.0.0.1:0", taken, nil, "link.listen: "},
		"no address for fronts":        {"localhost:0", "", nil, "link.address: missing"},
		"no certificate for fronts":    {o.file, "nats.url = '" + o.nats.ClientURL() + "'", nil, "link.ca, link.cert, link.key: missing"},
		"a link into another's folder": {"", "", []string{"-c", "http.principals.bob={tokens=['sha256:" + strings.Repeat("b", 64) + "'], folders=['" + o.top + "/link']}"}, "lies in " + o.top + "/ann of ann"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := o.start(t, strings.Replace(o.file, tt.was, tt.is, 1), tt.args...)
			if code := p.wait(); code != 1 || !strings.Contains(p.errors(), tt.want) || strings.Contains(p.errors(), "serving MCP") {
				t.Errorf("status %d: %.300s, want %q", code, p.errors(), tt.want)
			}
			if n := o.published(t); n != 0 {
				t.Errorf("%d nodes are published", n)
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

// TestRoles checks what a process with each role serves and publishes, and that it takes back its entry.
func TestRoles(t *testing.T) {
	o := newOwnProcess(t)
	for name, tt := range map[string]struct {
		file, program string
		mcp, nodes    int // the status of a request without a token; how many nodes the service has
		says          string
	}{
		"both":    {o.file, "/bin/true", 401, 1, "serving MCP at "},
		"a front": {"nats.roles = ['front']\n" + o.file, "/absent", 401, 0, "serving MCP at "},
		"a node":  {"nats.roles = ['node']\n" + o.file, "/bin/true", 404, 1, "running workers as the node n; health at "},
		"alone":   {"", "/bin/true", 401, 0, "serving MCP at "},
	} {
		t.Run(name, func(t *testing.T) {
			p, stop := o.start(t, tt.file, "--codex-mcp", tt.program, "-c", "http.metrics=127.0.0.1:0", "-c", "approvals.log="+o.top+"/log")
			url := func(after, path string) string {
				_, rest, _ := strings.Cut(p.errors(), after)
				rest, _, _ = strings.Cut(rest, path)
				return rest
			}
			until(t, "it does not serve", func() bool { return url(tt.says, "; number of users: 1\n") != "" })
			own := servertest.HTTPClient{URL: "http://" + strings.Split(url(tt.says, ";"), "/")[2]}
			metrics := servertest.HTTPClient{URL: url("serving metrics at ", "/metrics")}
			got := []int{own.Status(t, "/mcp"), own.Status(t, "/healthz"), own.Status(t, "/readyz"), metrics.Status(t, "/metrics"), o.published(t)}
			if diff := cmp.Diff([]int{tt.mcp, 200, 200, 200, tt.nodes}, got); diff != "" {
				t.Errorf("/mcp, /healthz, /readyz, /metrics and the nodes (-want +got):\n%s", diff)
			}
			stop()
			if code, n := p.wait(), o.published(t); code != 0 || n != 0 {
				t.Errorf("status %d, %d nodes are published", code, n)
			}
		})
	}
}
