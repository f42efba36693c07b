package interop

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// remote is a server over HTTP with the token that it wants.
type remote struct {
	URL   string `json:"url"` // "" for a server that the client starts
	Token string `json:"token"`
}

// RoundTrip implements [http.RoundTripper]: it adds the token.
func (r remote) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.Header.Set("Authorization", "Bearer "+r.Token)
	return http.DefaultTransport.RoundTrip(q)
}

// serveHTTP starts codex-mcp http, which ends with the test.
func serveHTTP(t *testing.T, server []string, home string, flags ...string) remote {
	t.Helper()
	argv := slices.Concat(server, []string{"http", "--listen", "127.0.0.1:0"}, flags)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CODEX_HOME=" + home, "TERM=xterm"}
	line := start(t, argv, env, func(cmd *exec.Cmd) (io.ReadCloser, error) { return cmd.StderrPipe() }, "serving MCP at ")
	found, _, _ := strings.Cut(line, ";")
	token, err := os.ReadFile(filepath.Join(home, "codex-mcp", "http-token"))
	if err != nil {
		t.Fatal(err)
	}
	return remote{found, strings.TrimSpace(string(token))}
}

// buildCommand builds a program of this module.
func buildCommand(t *testing.T, name string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", bin, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// serveFeatures starts the server with every feature that the suite asks for.
func serveFeatures(t *testing.T, program string) remote {
	t.Helper()
	url := start(t, []string{program, "-listen", "127.0.0.1:0"}, nil, func(cmd *exec.Cmd) (io.ReadCloser, error) { return cmd.StdoutPipe() }, "http://")
	return remote{URL: "http://" + url}
}

// start starts a server and returns what follows a mark in what it prints. The server
// ends with the test.
func start(t *testing.T, argv, env []string, output func(*exec.Cmd) (io.ReadCloser, error), mark string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	out, err := output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found, printed := make(chan string, 1), make(chan string, 1)
	go func() {
		lines, all := bufio.NewReader(out), ""
		for {
			line, err := lines.ReadString('\n')
			if _, rest, ok := strings.Cut(line, mark); ok {
				select {
				case found <- strings.TrimSpace(rest):
				default:
				}
			}
			if all += line; err != nil {
				close(found)
				printed <- all
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		all := <-printed
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v\n%s", argv, err, all)
		}
	})
	rest, ok := <-found
	if !ok {
		t.Fatalf("%q ended before it served", argv)
	}
	return rest
}

// holdBody reads a request's body before it forwards the request. Where the answer comes
// before the proxy has seen the end of the body, the proxy would close the connection.
func holdBody(p *httputil.ProxyRequest) {
	body, err := io.ReadAll(p.In.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	p.Out.Body, p.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// silentModel returns a model that gets no requests.
func silentModel(t *testing.T) *providertest.Server {
	t.Helper()
	model := providertest.New()
	t.Cleanup(model.Close)
	return model
}
