package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// patience bounds each wait. Only a failing test reaches it.
const patience = 2 * time.Minute

// builtPrograms names, for a process that this test starts, the folder of [programs].
const builtPrograms = "CODEX_MCP_TEST_PROGRAMS"

// programs builds the gateway and codex-mcp once, in one folder.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir := os.Getenv(builtPrograms); dir != "" {
		return dir, nil
	}
	if dir, err = os.MkdirTemp("", "codex-mcp-gateway"); err != nil {
		return "", err
	}
	for _, build := range []struct{ at, pkg string }{{".", "."}, {"../../../..", "./codexserver/cmd/codex-mcp"}} {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", dir+"/", build.pkg)
		cmd.Dir = build.at
		if out, err := cmd.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("go build %s: %v\n%s", build.pkg, err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	enclosure.Main()
	if os.Args[0] == natsName {
		if err := runNATS(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if dir, _ := programs(); dir != "" && os.Getenv(builtPrograms) == "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// configOf is the format of a configuration, without a policy, for a provider's address.
const configOf = `model = "mock-model"
sandbox_mode = "danger-full-access"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = %q
`

// folders are the folders of a run of the program.
type folders struct{ home, cwd, user string }

// process is one run of the program.
type process struct {
	t   *testing.T
	cmd *exec.Cmd

	mu     sync.Mutex
	stderr bytes.Buffer

	exited chan struct{} // closed when the process is gone
	code   int
}

// Write implements [io.Writer] for standard error.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(b)
}

func (p *process) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// wait waits for the end of the process and returns its exit status.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.code
	case <-time.After(patience):
		p.t.Fatal("the process did not end")
		return 0
	}
}

// children returns the ids of the processes that the process has started.
func (p *process) children() (all []int) {
	p.t.Helper()
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(p.cmd.Process.Pid)).Output() // fails without a child
	for word := range strings.FieldsSeq(string(out)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, pid)
	}
	return all
}

// launch starts a command, and kills it at the end of the test.
func launch(t *testing.T, f folders, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, exited: make(chan struct{})}
	cmd.Dir = f.cwd
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + f.user, "CODEX_HOME=" + f.home,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + filepath.Join(f.user, ".gitconfig"), "LANG=C.UTF-8",
	}
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "NATS_") || strings.HasPrefix(v, "NKEYS_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Stderr = p
	cmd.WaitDelay = patience // for a worker that still has standard error
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // the status is looked at
		p.code = cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("stderr:\n%s", p.errors())
		}
	})
	return p
}

// httpServer is a running gateway, and the token of one of its users.
type httpServer struct {
	*process
	url   string // without the path
	token string
}

// startHTTP starts the gateway for a model and waits until it serves.
func startHTTP(t *testing.T, f folders, model *providertest.Server, args ...string) *httpServer {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.home, "config.toml"), fmt.Appendf(nil, configOf, model.BaseURL()), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--engine", "native", "--listen", "127.0.0.1:0"}, args...)
	s := &httpServer{process: launch(t, f, exec.Command(filepath.Join(dir, program), args...))}
	until(t, "it does not serve", func() bool {
		_, rest, _ := strings.Cut(s.errors(), "serving MCP at ")
		url, _, ok := strings.Cut(rest, mcpPath+";")
		s.url = url
		return ok
	})
	return s
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// client returns a client with the server's token.
func (s *httpServer) client() servertest.HTTPClient {
	return servertest.HTTPClient{URL: s.url, Token: s.token}
}

// call calls the tool codex with a prompt.
func (s *httpServer) call(prompt string) (status int, body string, err error) {
	return s.request("codex", `"name":"codex","arguments":{"prompt":"`+prompt+`"}`, "")
}

// request sends a tools/call with these members in its params and in its _meta.
func (s *httpServer) request(name, params, meta string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	return s.client().Call(ctx, name, params, meta)
}
