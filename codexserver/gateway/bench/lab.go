package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// user is a principal of the gateways.
type user struct{ name, token, hash, folder string }

// lab has what the services need.
type lab struct {
	programs, dir string
	users         []user
	model         *providertest.Server
	http          *http.Client
	started       int
}

// open builds the programs and makes n users. The caller must close the lab, also after an error.
func (l *lab) open(ctx context.Context, n int) error {
	dir, err := filepath.Abs(l.dir)
	if l.dir == "" {
		dir, err = os.UserCacheDir()
	}
	l.dir = ""
	if err == nil {
		l.dir, err = os.MkdirTemp(dir, "bench")
	}
	if err != nil {
		return err
	}
	if l.programs != "" {
		l.programs, err = filepath.Abs(l.programs)
	} else {
		l.programs = filepath.Join(l.dir, "bin")
		for _, pkg := range []string{"codexserver/cmd/codex-mcp", "codexserver/gateway/cmd/codex-mcp-gateway", "nats-io/nats-server/v2"} {
			path := "github.com/codexmcp/codexmcp/" + pkg
			if strings.HasPrefix(pkg, "nats-io") {
				path = "github.com/" + pkg
			}
			if out, err := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", l.programs+"/", path).CombinedOutput(); err != nil {
				return fmt.Errorf("go build %s: %w\n%s", path, err, out)
			}
		}
	}
	if err != nil {
		return err
	}
	for i := range n {
		u := user{name: fmt.Sprintf("u%04d", i)}
		u.token, u.hash = access.NewToken()
		u.folder = filepath.Join(l.dir, "work", u.name)
		if err := os.MkdirAll(u.folder, 0o700); err != nil {
			return err
		}
		l.users = append(l.users, u)
	}
	l.model = providertest.New()
	l.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	return nil
}

func (l *lab) close() error {
	if l.model != nil {
		l.http.CloseIdleConnections()
		l.model.Close()
	}
	if l.dir == "" {
		return nil
	}
	return os.RemoveAll(l.dir)
}

// script sets what the model does, which the prompt says: a stream has so many pieces. Wait calls
// begun, and its answer comes when held has something.
func (l *lab) script(pieces int, begun func(), held <-chan struct{}) {
	l.model.Reset(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		turn := providertest.Say("done")
		switch r.LastUserText() {
		case "ask":
			if len(r.ToolOutputs()) == 0 {
				turn = providertest.Call(providertest.Shell("c1", "touch", "made"))
			}
		case "stream":
			turn.Text = slices.Repeat([]string{"word "}, pieces)
		case "wait":
			turn.Wait = held
			begun()
		}
		return turn
	}})
}

// service is a server, or several, with their users.
type service struct {
	lab   *lab
	name  string
	url   string
	users []user
	home  string // of the first process
	all   []*process
}

// process is a running program.
type process struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
}

// launch starts a program with a home of its own, whose files are given.
func (s *service) launch(program string, files map[string]string, args ...string) (*process, error) {
	l := s.lab
	l.started++
	home := filepath.Join(l.dir, fmt.Sprintf("home%d", l.started))
	files["config.toml"] = fmt.Sprintf("model = 'scripted'\napproval_policy = 'untrusted'\nsandbox_mode = 'workspace-write'\nmodel_provider = 'scripted'\n[model_providers.scripted]\nname = 'scripted'\nwire_api = 'responses'\nbase_url = %q\n", l.model.BaseURL())
	if s.home == "" {
		s.home = home
	}
	if err := os.MkdirAll(filepath.Join(home, "user"), 0o700); err != nil {
		return nil, err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	p := &process{log: filepath.Join(home, "log"), exited: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(filepath.Join(l.programs, program), args...)
	p.cmd.Dir, p.cmd.Stderr = home, log
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home + "/user", "CODEX_HOME=" + home}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.exited) }() // [service.close] waits for it
	s.all = append(s.all, p)
	return p, nil
}

// await waits until the log of a process has a word, and returns what follows it, up to a semicolon.
func (p *process) await(ctx context.Context, word string) (rest string, err error) {
	return rest, until(ctx, func() (bool, error) {
		found, err := p.has(word)
		if found != nil {
			rest, _, _ = strings.Cut(*found, ";")
		}
		return found != nil, err
	})
}

// has returns what follows a word in the log of a process, which must run; nil without the word.
func (p *process) has(word string) (*string, error) {
	text, err := os.ReadFile(p.log)
	select {
	case <-p.exited:
		return nil, fmt.Errorf("%s has ended: %s", p.cmd.Path, text)
	default:
	}
	if _, rest, ok := strings.Cut(string(text), word); ok {
		return &rest, err
	}
	return nil, err
}

// until waits for a condition, for at most five minutes.
func until(ctx context.Context, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// direct starts codex-mcp http, which has one user.
func (l *lab) direct(ctx context.Context) (*service, error) {
	s := &service{lab: l, name: "direct"}
	p, err := s.launch("codex-mcp", map[string]string{"codex-mcp.toml": "drain.timeout = '1s'\n"}, "http", "--engine", "native", "--listen", "127.0.0.1:0")
	if err != nil {
		return s, err
	}
	if s.url, err = p.await(ctx, "serving MCP at "); err != nil {
		return s, err
	}
	token, err := os.ReadFile(filepath.Join(s.home, "codex-mcp", "http-token"))
	s.users = slices.Repeat([]user{{token: strings.TrimSpace(string(token)), folder: l.users[0].folder}}, len(l.users))
	return s, err
}

// gateway starts codex-mcp-gateway for n users: with its own NATS server without nodes, else a
// cluster of three NATS servers, a front and so many nodes.
func (l *lab) gateway(ctx context.Context, n, nodes int, workerIdle string) (*service, error) {
	s := &service{lab: l, name: "gateway", users: l.users[:n]}
	var users strings.Builder
	fmt.Fprintf(&users, "drain.timeout = '1s'\nhttp.worker_idle = %q\n", workerIdle)
	for _, u := range s.users {
		fmt.Fprintf(&users, "[http.principals.%s]\ntokens = [%q]\nfolders = [%q]\nlimits.requests = 1_000_000\n", u.name, u.hash, u.folder)
	}
	roles := []string{""}
	if nodes > 0 {
		s.name = fmt.Sprintf("cluster, nodes: %d", nodes)
		urls, err := s.nats(ctx)
		if err != nil {
			return s, err
		}
		roles = nil
		for i := range nodes {
			roles = append(roles, fmt.Sprintf("[nats]\nurl = %q\nreplicas = 3\nroles = ['node']\n[node]\nname = 'n%d'\n", urls, i))
		}
		roles = append(roles, fmt.Sprintf("[nats]\nurl = %q\nreplicas = 3\nroles = ['front']\n", urls))
	}
	for _, role := range roles {
		p, err := s.launch("codex-mcp-gateway", map[string]string{"codex-mcp.toml": users.String(), "codex-mcp-gateway.toml": role}, "--engine", "native", "--listen", "127.0.0.1:0")
		if err == nil {
			s.url, err = p.await(ctx, map[bool]string{true: "running workers", false: "serving MCP at "}[strings.Contains(role, "'node'")])
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// nats starts three NATS servers, and returns their addresses.
func (s *service) nats(ctx context.Context) (string, error) {
	var addresses []string
	var free []net.Listener // all at a time, so that they are different
	for range 6 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		free, addresses = append(free, listener), append(addresses, listener.Addr().String())
	}
	for _, listener := range free {
		listener.Close()
	}
	routes, urls := addresses[:3], addresses[3:]
	var servers []*process
	for i, url := range urls {
		text := fmt.Sprintf("server_name: s%d\nlisten: %q\njetstream { store_dir: jetstream }\ncluster { name: bench, listen: %q, routes: [\"nats://%s\"] }\n", i, url, routes[i], strings.Join(routes, `", "nats://`))
		p, err := s.launch("nats-server", map[string]string{"nats.conf": text}, "-c", "nats.conf")
		if err != nil {
			return "", err
		}
		servers = append(servers, p)
	}
	return "nats://" + strings.Join(urls, ",nats://"), until(ctx, func() (bool, error) {
		led := false
		for _, p := range servers {
			found, err := p.has("metadata leader")
			if led = led || found != nil; err != nil {
				return false, err
			}
		}
		return led, nil
	})
}

// close ends the processes, the last one first, and waits for them.
func (s *service) close() (err error) {
	for _, p := range slices.Backward(s.all) {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-p.exited:
		case <-time.After(30 * time.Second):
			err = errors.Join(err, fmt.Errorf("%s does not end", p.cmd.Path), p.cmd.Process.Kill())
			<-p.exited
		}
	}
	return err
}
