//go:build cluster

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
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
	t         *testing.T
	top       string
	modelPort int // of the model provider

	nats, nodes, fronts []*machine
	address             string // of HAProxy
	certificate         string // the file of the certificate of all, in PEM, with its key
}

// machine is one process, with a network of its own, from which cables lead to the network of the test.
type machine struct {
	name  string
	start func() *process
	ready func(*process) bool
	home  string // of the program, "" for NATS
	disk  string // the folder of a NATS server, a file system of its own
	// operate returns the program with arguments of an operator on the machine.
	operate func(args ...string) *exec.Cmd
	*process
	url    string  // of a front or a node, without a path
	health string  // the URL that says whether the machine can be relied on
	cables []cable // to NATS, and to everything else
}

// lastPort is the port of the last address that freeAddress has tried.
var lastPort atomic.Int32

// freeAddress returns an address of this machine that was free. No connection gets its port by
// chance: it lies below those that the system chooses. So a server can have it again after its end.
func freeAddress(t *testing.T) string {
	t.Helper()
	const first, count = 10000, 22000
	lastPort.CompareAndSwap(0, int32(1+os.Getpid()*97%count)) // other processes begin elsewhere
	for range count {
		address := fmt.Sprintf("127.0.0.1:%d", first+int(lastPort.Add(1))%count)
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
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

// signal sends a signal to the process.
func (m *machine) signal(sig syscall.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(sig); err != nil {
		m.t.Error(err)
	}
}

// awaitEnd waits for the end of the process, after SIGTERM.
func (m *machine) awaitEnd() {
	m.t.Helper()
	if code := m.wait(); code != 0 {
		m.t.Errorf("%s ended with status %d", m.name, code)
	}
}

// awaitHealth waits until an operator would go on to the next machine.
func (m *machine) awaitHealth() {
	m.t.Helper()
	until(m.t, m.name+" does not become healthy", func() bool {
		answer, err := http.Get(m.health)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// newDisk returns the folder of a small file system.
func newDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("disk", dir, "tmpfs", 0, "size=256m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the folder is removed; the processes have ended
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill fills the disk of the machine, or removes what has filled it.
func (m *machine) fill(full bool) {
	m.t.Helper()
	name := filepath.Join(m.disk, "full")
	if !full {
		if err := os.Remove(name); err != nil {
			m.t.Error(err)
		}
		return
	}
	f, err := os.Create(name)
	if err != nil {
		m.t.Error(err)
		return
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil { // a smaller one may have room
			block = block[:len(block)/2]
		}
	}
}

// cut cuts the machine off from all NATS servers, which its first cable leads to, or from everything,
// or ends that.
func (m *machine) cut(off bool, cables int, w way) {
	m.t.Helper()
	for _, c := range m.cables[:cables] {
		c.pull(m.t, off, w)
	}
}

// startMachines starts a service for users, which are tables of codex-mcp.toml.
func startMachines(t *testing.T, top, users string, model *providertest.Server) *machines {
	t.Helper()
	s := &machines{t: t, top: top, certificate: filepath.Join(t.TempDir(), "certificate.pem")}
	var addresses []net.IP
	for i := range nodeCount + frontCount {
		addresses = append(addresses, net.ParseIP(addressAt(natsNetwork, i, false)))
	}
	if err := os.WriteFile(s.certificate, certificate(t, addresses...), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	served := &httptest.Server{Listener: l, Config: &http.Server{Handler: model}}
	served.Start()
	t.Cleanup(served.Close)
	s.modelPort = l.Addr().(*net.TCPAddr).Port
	s.startNATS()
	for i := range nodeCount {
		name := "node" + strconv.Itoa(i)
		s.nodes = append(s.nodes, s.add(name, fmt.Sprintf("roles = ['node']\n[node]\nname = %q\n", name), users))
	}
	for i := range frontCount {
		s.fronts = append(s.fronts, s.add("front"+strconv.Itoa(i), "roles = ['front']\n", users))
	}
	s.address = startProxy(t, s.certificate, s.fronts[0].url, s.fronts[1].url)
	return s
}

// startNATS starts a cluster of the real nats-server.
func (s *machines) startNATS() {
	t := s.t
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for range natsServers {
		routes = append(routes, freeAddress(t))
	}
	for i := range natsServers {
		dir := newDisk(t)
		address := freeAddress(t)
		config := filepath.Join(dir, "nats.conf")
		_, port, _ := net.SplitHostPort(address)
		// Without no_advertise a machine would learn other addresses than those at its cable.
		monitor := freeAddress(t)
		text := fmt.Sprintf("server_name: n%d\nport: %s\nhttp: %[7]s\ntls { cert_file: %[3]q, key_file: %[3]q, ca_file: %[3]q, verify: true }\njetstream { store_dir: %[4]q }\n"+
			"cluster { name: test, listen: %[5]q, no_advertise: true, routes: [\"nats://%[6]s\"] }\n", i, port, s.certificate, dir, routes[i], strings.Join(routes, `", "nats://`), monitor)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m := &machine{
			name: "NATS server " + strconv.Itoa(i), disk: dir, url: address, health: "http://" + monitor + "/healthz",
			start: func() *process {
				return launch(t, folders{cwd: dir}, exec.Command(filepath.Join(bin, "nats-server"), "-c", config))
			},
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

// add starts the program with a service file, in a network of its own.
func (s *machines) add(name, service, users string) *machine {
	t := s.t
	t.Helper()
	m := &machine{name: name}
	number := len(s.nodes) + len(s.fronts)
	inside := newNetwork(t)
	for i, network := range []int{natsNetwork, otherNetwork} {
		m.cables = append(m.cables, newCable(t, inside, network, number, i))
	}
	mustRun(t, enter(t, inside, ipProgram(), "route", "add", "default", "via", addressAt(natsNetwork, number, false))) // to the other machines
	var urls []string
	for _, server := range s.nats {
		_, port, _ := net.SplitHostPort(server.url)
		urls = append(urls, "tls://"+net.JoinHostPort(addressAt(natsNetwork, number, false), port))
	}
	f := folders{home: filepath.Join(s.top, name), cwd: s.top, user: filepath.Join(s.top, "user")}
	for _, dir := range []string{f.home, f.user} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{
		"codex-mcp.toml": users, "config.toml": fmt.Sprintf(configOf, fmt.Sprintf("http://%s:%d/v1", addressAt(otherNetwork, number, false), s.modelPort)),
		"codex-mcp-gateway.toml": fmt.Sprintf("[nats]\nurl = %q\nca = %[2]q\ncert = %[2]q\nkey = %[2]q\nreplicas = %[3]d\nlease = '3s'\n%[4]s[link]\naddress = \"%[5]s:4520\"\n", strings.Join(urls, ","), s.certificate, natsServers, service, addressAt(natsNetwork, number, true)),
	} {
		if err := os.WriteFile(filepath.Join(f.home, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	address := addressAt(otherNetwork, number, true) + ":4517"
	m.url = "http://" + address
	m.health, m.home = m.url+"/readyz", f.home
	m.operate = func(args ...string) *exec.Cmd {
		cmd := enter(t, inside, append([]string{filepath.Join(bin, program)}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.user, "CODEX_HOME=" + f.home}
		return cmd
	}
	m.start = func() *process {
		return launch(t, f, enter(t, inside, filepath.Join(bin, program), "--engine", "native", "--listen", address, "--behind-proxy", addressAt(otherNetwork, number, false),
			"-c", "http.hosts=['"+addressAt(otherNetwork, number, true)+"']", "-c", "approval_policy=untrusted", "-c", "sandbox_mode=workspace-write", "-c", "calls.grace=0s"))
	}
	m.ready = func(p *process) bool {
		return strings.Contains(p.errors(), "serving MCP at ") || strings.Contains(p.errors(), "running workers")
	}
	m.begin(t)
	return m
}

// startProxy runs HAProxy with the configuration of codexserver/gateway/README.md, for fronts with other
// addresses, and returns its own. The certificate is a file.
func startProxy(t *testing.T, certificate string, fronts ...string) (address string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```haproxy\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("codexserver/gateway/README.md has no configuration of HAProxy")
	}
	dir := t.TempDir()
	address = freeAddress(t)
	changes := []string{":443 ", address + " ", "/etc/haproxy/codex-mcp.pem", certificate}
	for i, front := range fronts {
		changes = append(changes, fmt.Sprintf("127.0.0.1:%d\n", 4517+i), strings.TrimPrefix(front, "http://")+"\n")
	}
	text := string(block[1])
	for i := 0; i < len(changes); i += 2 {
		if strings.Count(text, changes[i]) != 1 {
			t.Fatalf("the configuration does not have exactly one %q:\n%s", changes[i], text)
		}
	}
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(changes...).Replace(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, folders{cwd: dir}, exec.Command("haproxy", "-db", "-f", file))
	until(t, "HAProxy does not start", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return address
}
