package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats.go/jetstream"
)

// The parts of a service.
const (
	natsServers = 3
	nodeCount   = 3
	frontCount  = 2
)

// site is a service whose users work: NATS servers, nodes and fronts. Each of them is a process, which can be killed, and
// cables lead from it.
type site struct {
	t     *testing.T
	top   string
	model *providertest.Server
	lasts string // the leases, as a setting
	begun time.Time

	nats, nodes, fronts []*part
	certificate         string // the file of the certificate of all, in PEM, with its key

	persons []*person
	stream  jetstream.JetStream
	bucket  jetstream.KeyValue // of the leases
	leases  *lease.Leases
}

type part struct {
	name  string
	start func() *process
	ready string // what it says when it can be used
	home  string // of the program, "" for NATS
	disk  string // the folder of a NATS server
	*process
	pid     atomic.Int64 // of the process
	failing sync.Mutex   // held while a fault has the part

	url    string   // of a front or a node, without a path; the address of a NATS server
	health string   // the URL that says whether the part can be relied on
	nearby []*cable // to NATS
	others []*cable // to everything else
}

// withDisks runs a test in a process that may mount disks for the NATS servers. Nothing of that is left when it has
// ended.
func withDisks(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) {
		dir := must.Get(programs())(t)
		cmd.Env = append(cmd.Env, builtPrograms+"="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if os.Geteuid() != 0 { // then only in a user namespace
			cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
		}
	}, f)
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

// begin starts the process, and waits until it is ready. As systemd does, it starts a process again that cannot start, such as
// one that does not reach NATS in time.
func (m *part) begin(t *testing.T) {
	t.Helper()
	begin := func() {
		m.process = m.start()
		m.pid.Store(int64(m.cmd.Process.Pid))
	}
	begin()
	clustertest.Until(t, m.name+" does not start", func() bool {
		select {
		case <-m.exited:
			t.Logf("%s cannot start: %s", m.name, m.errors())
			begin()
		default:
		}
		return strings.Contains(m.errors(), m.ready)
	})
}

func (m *part) kill(t *testing.T) {
	t.Helper()
	must.OK(t, m.cmd.Process.Kill())
	<-m.exited
}

func (m *part) signal(sig syscall.Signal) {
	m.t.Helper()
	must.Check(m.t, m.cmd.Process.Signal(sig))
}

func (m *part) awaitEnd() {
	m.t.Helper()
	if code := m.wait(); code != 0 {
		m.t.Errorf("%s ended with status %d", m.name, code)
	}
}

// healthy reports whether an operator, or the proxy of README.md, relies on the part.
func (m *part) healthy() bool {
	r, err := http.NewRequest(http.MethodGet, m.health, nil)
	if err != nil {
		return false
	}
	r.Close = true // no request is sent over a connection that a front has just closed
	answer, err := http.DefaultClient.Do(r)
	return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// newDisk returns the folder of a small file system. It is for [withDisks].
func newDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, syscall.Mount("disk", dir, "tmpfs", 0, "size=64m"))
	t.Cleanup(func() { // before the folder is removed; the processes have ended
		must.Check(t, syscall.Unmount(dir, syscall.MNT_DETACH))
	})
	return dir
}

// fill fills the disk of the machine, or removes what has filled it.
func (m *part) fill(full bool) {
	m.t.Helper()
	name := filepath.Join(m.disk, "full")
	if !full {
		must.Check(m.t, os.Remove(name))
		return
	}
	f, err := os.Create(name)
	for block := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		m.t.Error(err)
	}
	_ = f.Close() // it is only there to take room
}

// cut cuts the part off from all NATS servers, or from everything, or ends that.
func (m *part) cut(off, everything bool, w way) {
	for _, c := range m.nearby {
		c.pull(off, w)
	}
	for _, c := range m.others {
		if everything {
			c.pull(off, w)
		}
	}
}

// startSite starts a service for a number of users, whose leases last so long, and their commands so many seconds. It is for
// [withDisks].
func startSite(t *testing.T, number int, lasts string, seconds func(name string) string) *site {
	t.Helper()
	enclosuretest.Need(t)
	names := make([]string, number)
	for i := range names {
		names[i] = fmt.Sprintf("u%02d", i)
	}
	s := &site{t: t, top: boxtest.Outside(t), lasts: lasts, begun: time.Now()}
	s.model = providertest.New(workModel(seconds, s.hasBegun))
	s.certificate = filepath.Join(t.TempDir(), "certificate.pem")
	t.Cleanup(s.model.Close)
	tables, tokens := newUsers(t, s.top, names...)
	for _, name := range names {
		s.persons = append(s.persons, &person{t: t, s: s, name: name, token: tokens[name]})
	}
	writeCertificate(t, s.certificate)
	s.startNATS()
	for i := range nodeCount {
		name := "node" + strconv.Itoa(i)
		s.nodes = append(s.nodes, s.add(name, fmt.Sprintf("roles = ['node']\n[node]\nname = %q\n", name), tables, "running workers"))
	}
	for i := range frontCount {
		s.fronts = append(s.fronts, s.add("front"+strconv.Itoa(i), "roles = ['front']\n", tables, "serving MCP at "))
	}
	t.Logf("the service runs after %v", time.Since(s.begun).Round(time.Millisecond))
	s.begun = time.Now()
	s.connect()
	return s
}

func (s *site) startNATS() {
	t := s.t
	t.Helper()
	var routes []string
	for range natsServers {
		routes = append(routes, freeAddress(t))
	}
	for i := range natsServers {
		// Without no_advertise a part would learn other addresses than those of its cables.
		more := fmt.Sprintf("server_name: n%d\ncluster { name: test, listen: %q, no_advertise: true, routes: [\"nats://%s\"] }\n",
			i, routes[i], strings.Join(routes, `", "nats://`))
		s.nats = append(s.nats, newNATS(t, newDisk(t), s.certificate, more))
	}
	clustertest.Until(t, "JetStream has no leader", func() bool {
		for _, m := range s.nats {
			if strings.Contains(m.errors(), "metadata leader") {
				return true
			}
		}
		return false
	})
}

// newNATS starts a NATS server, which keeps its files in a folder, with more lines of its configuration.
func newNATS(t *testing.T, dir, certificate, more string) *part {
	t.Helper()
	m := &part{name: "the NATS server of " + dir, disk: dir, url: freeAddress(t), ready: "Server is ready"}
	monitor, config := freeAddress(t), filepath.Join(dir, "nats.conf")
	m.health = "http://" + monitor + "/healthz"
	boxtest.Lay(t, dir, fmt.Sprintf("nats.conf=listen: %s\nhttp: %s\njetstream { store_dir: %q }\n%s", m.url, monitor, dir, more)+
		fmt.Sprintf("tls { cert_file: %[1]q, key_file: %[1]q, ca_file: %[1]q, verify: true }\n", certificate))
	m.start = func() *process {
		return launch(t, dir, "", built(t, "nats-server", "-c", config))
	}
	m.begin(t)
	return m
}

// connect connects to the NATS servers, until the end of the test, and opens the leases in them.
func (s *site) connect() {
	t := s.t
	t.Helper()
	var urls []string
	for _, server := range s.nats {
		urls = append(urls, "tls://"+server.url)
	}
	b := must.Get(broker.Connect(broker.Options{URL: strings.Join(urls, ","), CA: s.certificate, Cert: s.certificate, Key: s.certificate, Logger: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() { _ = b.Close() })
	s.stream = b.Stream
	s.bucket = must.Get(b.Stream.KeyValue(t.Context(), lease.Bucket))(t)
	s.leases = lease.New(s.bucket, placement.New(must.Get(b.Stream.KeyValue(t.Context(), placement.Bucket))(t)), time.Second)
}

func (s *site) add(name, service, users, ready string) *part {
	t := s.t
	t.Helper()
	m := &part{name: name, home: filepath.Join(s.top, name), ready: ready}
	var servers []string
	for _, server := range s.nats {
		c := newCable(t, server.url, false)
		m.nearby = append(m.nearby, c)
		servers = append(servers, "tls://"+c.address)
	}
	provider := must.Get(url.Parse(s.model.BaseURL()))(t)
	model, listen, address := newCable(t, provider.Host, false), freeAddress(t), freeAddress(t)
	link := newCable(t, listen, true)
	m.others = []*cable{model, link}
	boxtest.Lay(t, m.home, "codex-mcp.toml="+users, "config.toml="+configFor(strings.Replace(s.model.BaseURL(), provider.Host, model.address, 1)), "codex-mcp-gateway.toml="+
		fmt.Sprintf("[nats]\nurl = %q\nca = %[2]q\ncert = %[2]q\nkey = %[2]q\nlease = %[6]q\n%[3]s[link]\naddress = %[4]q\nlisten = %[5]q\n", // as many replicas as is usual
			strings.Join(servers, ","), s.certificate, service, link.address, listen, s.lasts))
	m.url = "http://" + address
	m.health = m.url + "/readyz"
	m.start = func() *process {
		return launch(t, s.top, m.home, gateway(t, "--engine", "native", "--listen", address, "-c", "approval_policy=untrusted", "-c", "sandbox_mode=workspace-write", "-c", "calls.grace=0s"))
	}
	m.begin(t)
	return m
}

// operate runs the program with arguments of an operator on the machine of a part, and returns what it prints.
func (s *site) operate(m *part, args ...string) []byte {
	s.t.Helper()
	cmd := gateway(s.t, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.top, "CODEX_HOME=" + m.home}
	out, err := cmd.Output()
	if err != nil {
		s.t.Errorf("%q: %v\n%s", args, err, out)
	}
	return out
}
