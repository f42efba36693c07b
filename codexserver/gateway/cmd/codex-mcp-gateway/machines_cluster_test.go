//go:build cluster

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// The machines of the service.
const (
	natsServers = 3
	nodeCount   = 3
	frontCount  = 2
)

// machines is a service as an operator would run it: NATS servers, nodes, and fronts behind
// HAProxy. Each of them is a process, which can be killed.
type machines struct {
	t     *testing.T
	top   string
	model *providertest.Server

	nats, nodes, fronts []*machine
	address             string // of HAProxy
	certificate         string // the file of its certificate
}

// machine is one process. It reaches NATS by wires of its own.
type machine struct {
	name  string
	start func() *process
	ready func(*process) bool
	*process
	url   string // of a front, without a path
	wires []*wire
}

// wire forwards the connections to an address, and can be cut as a network is: nothing arrives any
// more, and nobody is told.
type wire struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	whole    *sync.Cond
	isCut    bool
	closed   bool
	open     []net.Conn
	running  sync.WaitGroup
}

// newWire starts a wire, which ends with the test.
func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, to: to}
	w.whole = sync.NewCond(&w.mu)
	w.running.Go(w.accept)
	t.Cleanup(func() {
		l.Close()
		w.mu.Lock()
		w.closed = true
		for _, c := range w.open {
			c.Close()
		}
		w.whole.Broadcast()
		w.mu.Unlock()
		w.running.Wait()
	})
	return w
}

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.running.Go(func() {
			defer near.Close()
			if !w.keep(near) {
				return
			}
			far, err := net.Dial("tcp", w.to)
			if err != nil {
				return // the server is dead
			}
			defer far.Close()
			if !w.keep(far) {
				return
			}
			w.running.Go(func() { w.forward(far, near) })
			w.forward(near, far)
		})
	}
}

// keep waits while the wire is cut. It returns false at the end of the test.
func (w *wire) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.isCut && !w.closed {
		w.whole.Wait()
	}
	w.open = append(w.open, c)
	return !w.closed
}

// forward sends what it reads, and holds it back while the wire is cut.
func (w *wire) forward(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		w.mu.Lock()
		for w.isCut && !w.closed {
			w.whole.Wait()
		}
		w.mu.Unlock()
		if n > 0 {
			if _, failed := to.Write(b[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = cut
	w.whole.Broadcast()
}

// freeAddress returns an address of this machine that was free.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// begin starts the process, and waits until it is ready.
func (m *machine) begin(t *testing.T) {
	t.Helper()
	p := m.start()
	until(t, m.name+" does not start", func() bool { return m.ready(p) })
	m.process = p
}

// kill kills the process.
func (m *machine) kill(t *testing.T) {
	t.Helper()
	if err := m.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-m.exited
}

// cut cuts the machine off from all NATS servers, or ends that.
func (m *machine) cut(off bool) {
	for _, w := range m.wires {
		w.set(off)
	}
}

// startMachines starts a service for users, which are tables of codex-mcp.toml.
func startMachines(t *testing.T, top, users string, model *providertest.Server) *machines {
	t.Helper()
	s := &machines{t: t, top: top, model: model}
	s.startNATS()
	for i := range nodeCount {
		name := "node" + strconv.Itoa(i)
		s.nodes = append(s.nodes, s.add(name, fmt.Sprintf("roles = ['node']\n[node]\nname = %q\n", name), users))
	}
	for i := range frontCount {
		s.fronts = append(s.fronts, s.add("front"+strconv.Itoa(i), "roles = ['front']\n", users))
	}
	s.startProxy()
	return s
}

// startNATS starts a cluster of the real nats-server.
func (s *machines) startNATS() {
	t := s.t
	t.Helper()
	bin := filepath.Join(t.TempDir(), "nats-server")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var routes []string
	for range natsServers {
		routes = append(routes, freeAddress(t))
	}
	for i := range natsServers {
		dir := t.TempDir()
		address := freeAddress(t)
		config := filepath.Join(dir, "nats.conf")
		// Without no_advertise a machine would learn the addresses behind its wires.
		text := fmt.Sprintf("server_name: n%d\nlisten: %q\njetstream { store_dir: %q }\ncluster { name: test, listen: %q, no_advertise: true, routes: [\"nats://%s\"] }\n",
			i, address, dir, routes[i], strings.Join(routes, `", "nats://`))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m := &machine{
			name: "NATS server " + strconv.Itoa(i), url: address,
			start: func() *process { return launch(t, folders{cwd: dir}, exec.Command(bin, "-c", config)) },
			ready: func(p *process) bool { return strings.Contains(p.errors(), "Server is ready") },
		}
		m.begin(t)
		s.nats = append(s.nats, m)
	}
	until(t, "JetStream has no leader", func() bool {
		for _, m := range s.nats {
			if strings.Contains(m.errors(), "metadata leader") {
				return true
			}
		}
		return false
	})
}

// add starts the program with a service file.
func (s *machines) add(name, service, users string) *machine {
	t := s.t
	t.Helper()
	m := &machine{name: name}
	var urls []string
	for _, server := range s.nats {
		w := newWire(t, server.url)
		m.wires = append(m.wires, w)
		urls = append(urls, "nats://"+w.listener.Addr().String())
	}
	f := folders{home: filepath.Join(s.top, name), cwd: s.top, user: filepath.Join(s.top, "user")}
	for _, dir := range []string{f.home, f.user} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{
		"codex-mcp.toml": users, "config.toml": fmt.Sprintf(configOf, s.model.BaseURL()),
		"codex-mcp-gateway.toml": fmt.Sprintf("[nats]\nurl = %q\nreplicas = %d\nlease = '3s'\n%s", strings.Join(urls, ","), natsServers, service),
	} {
		if err := os.WriteFile(filepath.Join(f.home, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	m.url = "http://" + address
	m.start = func() *process {
		return launch(t, f, exec.Command(filepath.Join(bin, program), "--engine", "native", "--listen", address, "--behind-proxy", "127.0.0.1",
			"-c", "approval_policy=untrusted", "-c", "sandbox_mode=workspace-write", "-c", "tasks.grace=0s"))
	}
	m.ready = func(p *process) bool {
		return strings.Contains(p.errors(), "serving MCP at ") || strings.Contains(p.errors(), "running workers")
	}
	m.begin(t)
	return m
}

// startProxy runs HAProxy with the configuration of docs/operating.md, with other addresses.
func (s *machines) startProxy() {
	t := s.t
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```haproxy\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/operating.md has no configuration of HAProxy")
	}
	dir := t.TempDir()
	pair := certificate(t)
	s.certificate, s.address = filepath.Join(dir, "codex-mcp.pem"), freeAddress(t)
	changes := []string{":443 ", s.address + " ", "/etc/haproxy/codex-mcp.pem", s.certificate}
	for i, front := range s.fronts {
		changes = append(changes, fmt.Sprintf("127.0.0.1:%d\n", 4517+i), strings.TrimPrefix(front.url, "http://")+"\n")
	}
	text := string(block[1])
	for i := 0; i < len(changes); i += 2 {
		if strings.Count(text, changes[i]) != 1 {
			t.Fatalf("the configuration does not have exactly one %q:\n%s", changes[i], text)
		}
	}
	file := filepath.Join(dir, "haproxy.cfg")
	for name, text := range map[string]string{s.certificate: string(pair), file: strings.NewReplacer(changes...).Replace(text)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	launch(t, folders{cwd: dir}, exec.Command("haproxy", "-db", "-f", file))
	until(t, "HAProxy does not start", func() bool {
		c, err := net.Dial("tcp", s.address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}
