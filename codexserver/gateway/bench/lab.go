package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// lab has what the services need, and the figures.
type lab struct {
	size    size
	table   table
	dir     string
	model   *providertest.Server
	http    http.Client
	started int // programs
}

// together is how many users call at the same time, where several do.
const together = 6

// run measures parts. Its files are in a new folder of dir, which it removes.
func (l *lab) run(ctx context.Context, dir string, parts ...string) (err error) {
	l.table.samples = map[string][]float64{}
	l.http = http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: together}, Timeout: 5 * time.Minute}
	defer l.http.CloseIdleConnections()
	l.model = providertest.New()
	defer l.model.Close()
	l.script(nil)
	if l.dir, err = os.MkdirTemp(dir, "bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(l.dir)) }()
	const own = "github.com/codexmcp/codexmcp/codexserver/"
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", l.dir+"/", own+"cmd/codex-mcp", own+"gateway/cmd/codex-mcp-gateway", own+"gateway/bench", "github.com/nats-io/nats-server/v2")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	certify := exec.CommandContext(ctx, "openssl", strings.Fields("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=bench -addext subjectAltName=DNS:bench -keyout link.key -out link.pem")...)
	certify.Dir = l.dir
	if out, err := certify.CombinedOutput(); err != nil {
		return fmt.Errorf("openssl: %w\n%s", err, out)
	}
	for _, part := range parts {
		measure, ok := map[string]func(context.Context) error{"calls": l.calls, "states": l.states, "workers": l.workers, "idle": l.idle}[part]
		if !ok {
			return fmt.Errorf("-part: unknown %q", part)
		}
		if err := measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return nil
}

// script sets what the model does, which the prompt says. It calls hold before it answers "wait".
func (l *lab) script(hold func()) {
	l.model.Reset(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		turn := providertest.Say("done")
		switch r.LastUserText() {
		case "ask":
			if len(r.ToolOutputs()) == 0 {
				turn = providertest.Call(providertest.Shell("c1", "touch", "made"))
			}
		case "stream":
			turn.Text = slices.Repeat([]string{"word "}, l.size.pieces)
		case "wait":
			hold()
		}
		return turn
	}})
}

// user is a principal of a gateway.
type user struct{ token, folder string }

// service is a server, or several.
type service struct {
	lab     *lab
	name    string
	one     string // begins the rows of the service with one user
	nodes   int
	url     string
	store   string        // the addresses of the NATS servers of a cluster
	started time.Duration // how long the latest program took until it was ready
	users   []user
	clients []*session  // of the first users
	all     []*exec.Cmd // its programs: in a cluster the NATS servers, the nodes and the front
	err     error       // the first one of [service.launch]
}

// The services without a cluster, in place of the number of its nodes.
const (
	plain  = -2 // codex-mcp http behind a reverse proxy of net/http, which checks nothing
	direct = -1 // codex-mcp http, which has one user
	alone  = 0  // a gateway with its own NATS server
)

// start starts a service for n users, the first of whom get clients. Workers last so long without
// a request. The caller must close the service, also after an error.
func (l *lab) start(ctx context.Context, nodes, n, clients int, workerIdle string) (*service, error) {
	s := &service{lab: l, nodes: nodes, one: fmt.Sprintf("one user of %d: ", n), name: fmt.Sprintf("cluster, nodes: %d", nodes)}
	const flags, serving, drain = " --engine native --listen 127.0.0.1:0", "serving MCP at ", "http.drain_timeout = '1s'\n"
	var keys strings.Builder
	fmt.Fprintf(&keys, drain+"http.worker_idle = %q\n", workerIdle)
	for i := range n {
		token, hash := access.NewToken()
		folder := filepath.Join(l.dir, "work", strconv.Itoa(i))
		s.err = cmp.Or(s.err, os.MkdirAll(folder, 0o700))
		s.users = append(s.users, user{token, folder})
		fmt.Fprintf(&keys, "[http.principals.u%d]\ntokens = [%q]\nfolders = [%q]\nlimits.requests = 1_000_000\n", i, hash, folder)
	}
	for i := n; i < l.size.users; i++ {
		folder := filepath.Join(l.dir, "work", strconv.Itoa(i))
		s.err = cmp.Or(s.err, os.MkdirAll(folder, 0o700))
		fmt.Fprintf(&keys, "[http.principals.u%d]\ntokens = ['sha256:%064x']\nfolders = [%q]\n", i, i, folder)
	}
	gateway := func(ready, role string) {
		s.launch(ctx, "codex-mcp-gateway"+flags, ready, map[string]string{"codex-mcp.toml": keys.String(), "codex-mcp-gateway.toml": role})
	}
	switch nodes {
	case direct, plain:
		s.name = "direct"
		s.launch(ctx, "codex-mcp http"+flags, serving, map[string]string{"codex-mcp.toml": drain + "calls.full_access = 'allow'\n"})
		token, err := os.ReadFile(filepath.Join(l.dir, fmt.Sprintf("home%d", l.started), "codex-mcp", "http-token"))
		s.err = cmp.Or(s.err, err)
		s.users = slices.Repeat([]user{{strings.TrimSpace(string(token)), s.users[0].folder}}, n)
		if nodes == plain {
			s.name = "plain proxy"
			s.launch(ctx, "bench -proxy "+s.url, serving, map[string]string{})
		}
	case alone:
		s.name = "gateway"
		gateway(serving, "")
	default:
		s.store = s.nats(ctx)
		cluster := fmt.Sprintf("link = {address = '127.0.0.1:0', listen = '127.0.0.1:0', ca = %[1]q, cert = %[1]q, key = %[2]q}\n[nats]\nurl = %[3]q\nreplicas = 3\n",
			filepath.Join(l.dir, "link.pem"), filepath.Join(l.dir, "link.key"), s.store)
		for i := range nodes {
			gateway("running workers", cluster+fmt.Sprintf("roles = ['node']\n[node]\nname = 'n%d'\n", i))
		}
		gateway(serving, cluster+"roles = ['front']\n")
	}
	for i := 0; i < clients && s.err == nil; i++ {
		var c *session
		if c, s.err = s.session(ctx, s.users[i]); s.err == nil {
			_, s.err = c.do(ctx, "say", nil) // warms up
		}
		s.clients = append(s.clients, c)
	}
	return s, s.err
}

// nats launches three NATS servers, and returns their addresses. Each has an IP address of its own
// on this machine, so that nothing else has its ports.
func (s *service) nats(ctx context.Context) string {
	host := fmt.Sprintf("127.%d.%d.", 1+os.Getpid()%250, 1+s.lab.started)
	for i, ready := range []string{"Server is ready", "Server is ready", "metadata leader"} {
		s.launch(ctx, "nats-server -c nats.conf", ready, map[string]string{"nats.conf": fmt.Sprintf(`
server_name: s%[2]d
listen: "%[1]s%[2]d:24222"
jetstream { store_dir: jetstream }
cluster { name: bench, listen: "%[1]s%[2]d:26222", routes: ["nats://%[1]s1:26222", "nats://%[1]s2:26222", "nats://%[1]s3:26222"] }
`, host, 1+i)})
	}
	return fmt.Sprintf("nats://%[1]s1:24222,nats://%[1]s2:24222,nats://%[1]s3:24222", host)
}

// launch starts a program with a home of its own, whose files are given, and waits until it logs
// that it is ready. What follows that, up to a semicolon, is the URL of the service. After an error
// of a service it does nothing.
func (s *service) launch(ctx context.Context, command, ready string, files map[string]string) {
	s.lab.started++
	home := filepath.Join(s.lab.dir, fmt.Sprintf("home%d", s.lab.started))
	files["config.toml"] = fmt.Sprintf("model = 'scripted'\napproval_policy = 'untrusted'\nsandbox_mode = 'workspace-write'\nmodel_provider = 'scripted'\n[model_providers.scripted]\nname = 'scripted'\nwire_api = 'responses'\nbase_url = %q\nrequest_max_retries = 0\nstream_max_retries = 0\n", s.lab.model.BaseURL())
	s.err = cmp.Or(s.err, os.MkdirAll(filepath.Join(home, "user"), 0o700))
	for name, text := range files {
		s.err = cmp.Or(s.err, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
	}
	log, err := os.Create(filepath.Join(home, "log"))
	if s.err = cmp.Or(s.err, err); s.err != nil {
		return
	}
	defer log.Close()
	words := strings.Fields(command)
	cmd := exec.Command(filepath.Join(s.lab.dir, words[0]), words[1:]...)
	cmd.Dir, cmd.Stderr, cmd.Env = home, log, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home + "/user", "CODEX_HOME=" + home}
	began := time.Now()
	if s.err = cmd.Start(); s.err != nil {
		return
	}
	s.all = append(s.all, cmd)
	var text []byte
	if err := until(ctx, func() (ok bool) {
		text, _ = os.ReadFile(log.Name()) // the last error is that it says nothing
		_, s.url, ok = strings.Cut(string(text), ready)
		return ok
	}); err != nil {
		s.err = fmt.Errorf("%s does not log %q: %w\n%s", command, ready, err, text)
	}
	s.started = time.Since(began)
	s.url, _, _ = strings.Cut(s.url, ";")
}

// until waits for a condition, for at most two minutes.
func until(ctx context.Context, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for !ok() && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
	}
	return ctx.Err()
}

// close ends the programs, the last one first.
func (s *service) close() (err error) {
	for _, cmd := range slices.Backward(s.all) {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // the signal is no error
		if !late.Stop() {
			err = errors.Join(err, fmt.Errorf("%s did not end", cmd.Path))
		}
	}
	return err
}
