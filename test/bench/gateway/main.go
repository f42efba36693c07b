// Command gateway measures what a request costs by the gateway: the time that its client waits, and the CPU time of all
// programs. Beside it stand codex-mcp http, which is the direct way, and that behind a plain reverse proxy of net/http, which is
// the least that a hop costs. The services take turns, and each figure is the median of the rounds, so the ratios hold on a machine
// that does other work too.
//
//	go run ./gateway DIR…
//
// Each folder has the programs codex-mcp, codex-mcp-gateway and nats-server of a commit, and its name is that of its rows. The
// direct way has the programs of the first one. A file user.toml in a folder has further keys for its user. It runs on Linux.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

const (
	rounds = 9
	pings  = 400 // of each round
	calls  = 40
)

// bench has what the services need.
type bench struct {
	dir     string
	model   *providertest.Server
	started int
	linked  string // keys of link with the certificate of fronts and nodes
}

// service is a server, or several.
type service struct {
	name, url, token string
	session          string
	all              []*exec.Cmd
	figures          map[string][]float64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) == 3 && os.Args[1] == "-proxy" {
		fmt.Fprintln(os.Stderr, "gateway:", proxy(os.Args[2]))
		os.Exit(1)
	}
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "gateway: want folders with programs")
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dirs []string) (err error) {
	cache, err := os.UserCacheDir() // a worker has a /tmp of its own
	if err != nil {
		return err
	}
	b := &bench{model: providertest.New(providertest.Turn{Repeat: true,
		Func: func(providertest.Request) providertest.Turn { return providertest.Say("done") }})}
	defer b.model.Close()
	if b.dir, err = os.MkdirTemp(cache, "bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	certify := exec.CommandContext(ctx, "openssl",
		strings.Fields("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=bench "+
			"-addext subjectAltName=DNS:bench -keyout link.key -out link.pem")...)
	certify.Dir = b.dir
	if out, err := certify.CombinedOutput(); err != nil {
		return fmt.Errorf("openssl: %w\n%s", err, out)
	}
	b.linked = fmt.Sprintf("link.ca = %[1]q\nlink.cert = %[1]q\nlink.key = %[2]q\n", b.dir+"/link.pem",
		b.dir+"/link.key")
	var all []*service
	defer func() {
		for _, s := range all {
			s.close()
		}
	}()
	for i, dir := range dirs {
		made := []func(context.Context, string) (*service, error){b.gateway, b.cluster}
		if i == 0 {
			made = slices.Concat([]func(context.Context, string) (*service, error){b.direct, b.proxied}, made)
		}
		for _, start := range made {
			s, err := start(ctx, dir)
			if s != nil {
				all = append(all, s)
			}
			if err == nil {
				err = s.begin(ctx)
			}
			if err != nil {
				return err
			}
		}
	}
	for range rounds {
		for _, s := range all {
			if err := s.measure("ping", pings,
				func() error { return s.send(ctx, `{"jsonrpc":"2.0","id":1,"method":"ping"}`) }); err != nil {
				return err
			}
		}
		for _, s := range all {
			call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex",` +
				`"arguments":{"prompt":"say"}}}`
			if err := s.measure("codex", calls, func() error { return s.send(ctx, call) }); err != nil {
				return err
			}
		}
	}
	fmt.Println("| | ping, ms | CPU of a ping, µs | codex, ms | CPU of codex, ms |\n|---|---|---|---|---|")
	for _, s := range all {
		fmt.Printf("| %s | %.2f | %.0f | %.1f | %.2f |\n", s.name, s.median("ping took"), s.median("ping cpu")*1e3,
			s.median("codex took"), s.median("codex cpu"))
	}
	return nil
}

func (s *service) median(what string) float64 {
	all := slices.Sorted(slices.Values(s.figures[what]))
	return all[len(all)/2]
}

// measure does something n times, and adds the median of the times and the CPU time of one, in milliseconds.
func (s *service) measure(what string, n int, do func() error) error {
	before := s.cpu()
	var took []float64
	for range n {
		began := time.Now()
		if err := do(); err != nil {
			return fmt.Errorf("%s, %s: %w", s.name, what, err)
		}
		took = append(took, time.Since(began).Seconds()*1e3)
	}
	slices.Sort(took)
	s.figures[what+" took"] = append(s.figures[what+" took"], took[n/2])
	s.figures[what+" cpu"] = append(s.figures[what+" cpu"], (s.cpu()-before)*1e3/float64(n))
	return nil
}

// cpu returns the CPU time of the programs with all that they have started, in seconds. Linux tells programs hundredths.
func (s *service) cpu() float64 {
	own := map[string]bool{}
	for _, cmd := range s.all {
		own[strconv.Itoa(cmd.Process.Pid)] = true
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	parents, ticks := map[string]string{}, map[string]int{}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid := filepath.Base(filepath.Dir(file))
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on
		parents[pid] = fields[1]
		for _, field := range fields[11:15] {
			n, _ := strconv.Atoi(field) // the kernel writes numbers
			ticks[pid] += n
		}
	}
	sum := 0
	for pid := range parents {
		for at := pid; at != ""; at = parents[at] {
			if own[at] {
				sum += ticks[pid]
				break
			}
		}
	}
	return float64(sum) / 100
}

// send sends a message of MCP 2025-11-25, and reads the answer to its end. The first message begins the session.
func (s *service) send(ctx context.Context, message string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(message))
	if err != nil {
		return err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + s.token}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"}}
	if s.session != "" {
		r.Header["Mcp-Session-Id"], r.Header["Mcp-Protocol-Version"] = []string{s.session}, []string{"2025-11-25"}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	s.session = cmp.Or(s.session, answer.Header.Get("Mcp-Session-Id"))
	read, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode/100 != 2 || answer.StatusCode == http.StatusOK &&
		!bytes.Contains(read, []byte(`"result"`))) {
		err = fmt.Errorf("%s: %.500s", answer.Status, read)
	}
	return err
}

// begin begins the session.
func (s *service) begin(ctx context.Context) error {
	err := s.send(ctx, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	return cmp.Or(err, s.send(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

func (b *bench) direct(ctx context.Context, dir string) (*service, error) {
	s := &service{name: "codex-mcp http", figures: map[string][]float64{}}
	home, err := b.launch(ctx, s, filepath.Join(dir, "codex-mcp")+" http", "serving MCP at ", nil)
	if err != nil {
		return s, err
	}
	token, err := os.ReadFile(filepath.Join(home, "codex-mcp", "http-token"))
	s.token = strings.TrimSpace(string(token))
	return s, err
}

func (b *bench) proxied(ctx context.Context, dir string) (*service, error) {
	s, err := b.direct(ctx, dir)
	if err != nil {
		return s, err
	}
	own, err := os.Executable()
	if err == nil {
		s.name = "a plain proxy"
		_, err = b.launch(ctx, s, own+" -proxy "+s.url, "serving MCP at ", nil)
	}
	return s, err
}

// users returns codex-mcp.toml with one user.
func (b *bench) users(s *service, dir string) (string, error) {
	folder := filepath.Join(b.dir, "work")
	out, err := exec.Command(filepath.Join(dir, "codex-mcp-gateway"), "--new-token", "ann").Output()
	if err != nil {
		return "", err
	}
	s.token, _, _ = strings.Cut(string(out), "\n")
	_, hash, _ := strings.Cut(string(out), `"sha256:`)
	hash, _, _ = strings.Cut(hash, `"`)
	more, err := os.ReadFile(filepath.Join(dir, "user.toml"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return fmt.Sprintf("[http.principals.ann]\ntokens = ['sha256:%s']\nfolders = [%q]\n%s", hash, folder, more),
		errors.Join(err, os.MkdirAll(folder, 0o700))
}

func (b *bench) gateway(ctx context.Context, dir string) (*service, error) {
	s := &service{name: filepath.Base(dir) + ": one gateway", figures: map[string][]float64{}}
	users, err := b.users(s, dir)
	if err == nil {
		_, err = b.launch(ctx, s, filepath.Join(dir, "codex-mcp-gateway"), "serving MCP at ",
			map[string]string{"codex-mcp.toml": users})
	}
	return s, err
}

func (b *bench) cluster(ctx context.Context, dir string) (*service, error) {
	s := &service{name: filepath.Base(dir) + ": a front and a node", figures: map[string][]float64{}}
	users, err := b.users(s, dir)
	var port, link int // of NATS, and of the node
	for _, free := range []*int{&port, &link} {
		if err == nil {
			*free, err = freePort()
		}
	}
	if err == nil {
		_, err = b.launch(ctx, s, fmt.Sprintf("%s -js -a 127.0.0.1 -p %d -sd jetstream",
			filepath.Join(dir, "nats-server"), port), "Server is ready", nil)
	}
	for _, role := range []string{"node", "front"} {
		if err == nil {
			_, err = b.launch(ctx, s, filepath.Join(dir, "codex-mcp-gateway"),
				map[string]string{"node": "running workers", "front": "serving MCP at "}[role], map[string]string{
					"codex-mcp.toml": users, "codex-mcp-gateway.toml": b.linked +
						fmt.Sprintf("link.address = '127.0.0.1:%d'\n[nats]\nurl = 'nats://127.0.0.1:%d'\nroles = "+
							"[%q]\n",
							link, port, role),
				})
		}
	}
	return s, err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// launch starts a program with a home of its own, and waits until it logs that it is ready. What follows that, up to a semicolon, is
// the URL of the service.
func (b *bench) launch(
	ctx context.Context, s *service, command, ready string, files map[string]string,
) (home string, err error) {
	b.started++
	home = filepath.Join(b.dir, fmt.Sprint("home", b.started))
	all := map[string]string{"config.toml": fmt.Sprintf("model = 'scripted'\nmodel_provider = "+
		"'scripted'\n[model_providers.scripted]\nname = 'scripted'\nwire_api = 'responses'\nbase_url = %q\n",
		b.model.BaseURL())}
	maps.Copy(all, files)
	err = os.MkdirAll(filepath.Join(home, "user"), 0o700)
	for name, text := range all {
		err = cmp.Or(err, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
	}
	log, failed := os.Create(filepath.Join(home, "log"))
	if err = cmp.Or(err, failed); err != nil {
		return home, err
	}
	defer log.Close()
	words := strings.Fields(command)
	if strings.HasPrefix(filepath.Base(words[0]), "codex-mcp") {
		words = append(words, "--engine", "native", "--listen", "127.0.0.1:0")
	}
	if words[0], err = filepath.Abs(words[0]); err != nil {
		return home, err
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Stderr, cmd.Env = home, log,
		[]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home + "/user", "CODEX_HOME=" + home}
	if err := cmd.Start(); err != nil {
		return home, err
	}
	s.all = append(s.all, cmd)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		text, err := os.ReadFile(log.Name())
		if _, rest, ok := strings.Cut(string(text), ready); ok {
			s.url, _, _ = strings.Cut(rest, ";")
			return home, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return home, fmt.Errorf("%s does not log %q:\n%s", command, ready, text)
		}
	}
}

// close ends the programs, the last one first.
func (s *service) close() {
	for _, cmd := range slices.Backward(s.all) {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // the signal is no error
		late.Stop()
	}
}

// proxy serves as a reverse proxy of a URL until it fails.
func proxy(to string) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "serving MCP at http://%s%s;", l.Addr(), u.Path)
	return (&http.Server{ReadHeaderTimeout: time.Minute,
		Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			// a proxy that still reads it may break off the answer; the server refuses what is cut off
			body, _ := io.ReadAll(r.In.Body)
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
			r.SetURL(&url.URL{Scheme: u.Scheme, Host: u.Host})
		}}}).Serve(l)
}
