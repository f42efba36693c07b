//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// patience bounds each wait in the tests of codex-mcp http.
const patience = 2 * time.Minute

// httpServer is a running codex-mcp http.
type httpServer struct {
	*process
	url   string // without the path
	token string
}

// startHTTP starts the command for a model and waits until it serves.
func startHTTP(t *testing.T, f folders, model *providertest.Server, args ...string) *httpServer {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.home, "config.toml"), fmt.Appendf(nil, configOf, model.BaseURL()), 0o600); err != nil {
		t.Fatal(err)
	}
	return serveIn(t, f, append([]string{"--engine", "native"}, args...)...)
}

// serveIn starts the command with the configuration in the folders and waits until it
// serves.
func serveIn(t *testing.T, f folders, args ...string) *httpServer {
	t.Helper()
	s := &httpServer{process: start(t, f, append([]string{"http", "--listen", "127.0.0.1:0"}, args...)...)}
	until := time.Now().Add(patience)
	for s.url == "" {
		if _, rest, ok := strings.Cut(s.errors(), "serving MCP at "); ok {
			s.url, _, ok = strings.Cut(rest, mcpPath+";")
			if ok {
				break
			}
			s.url = ""
		}
		if time.Now().After(until) {
			t.Fatal("it does not serve")
		}
		<-time.After(10 * time.Millisecond)
	}
	token, err := loadToken(f.home)
	if err != nil {
		t.Fatal(err)
	}
	s.token = token
	return s
}

// startConnected is a launcher that starts codex-mcp http, and a proxy in front of it for its client.
func startConnected(t *testing.T, f folders, args ...string) *process {
	t.Helper()
	unlocked := `http.unlocked_arguments=["approval-policy","config","profile","sandbox"]`
	s := serveIn(t, f, append(args, "-c", unlocked)...)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return launch(t, f, exec.Command("env", proxyTo+"="+s.url+mcpPath, tokenOf+"="+s.token, self))
}

// client returns a client with the server's token.
func (s *httpServer) client() servertest.HTTPClient {
	return servertest.HTTPClient{URL: s.url, Token: s.token}
}

// get returns the status of a path.
func (s *httpServer) get(path string) int {
	s.t.Helper()
	return s.client().Status(s.t, path)
}

// call calls the tool codex with a prompt.
func (s *httpServer) call(prompt string) (status int, body string, err error) {
	return s.tool("codex", `{"prompt":"`+prompt+`"}`)
}

// tool calls a tool, as MCP 2026-07-28 does.
func (s *httpServer) tool(name, arguments string) (status int, body string, err error) {
	return s.request(name, `"name":"`+name+`","arguments":`+arguments, "")
}

// request sends a tools/call with these members in its params and in its _meta.
func (s *httpServer) request(name, params, meta string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	return s.client().Call(ctx, name, params, meta)
}

// TestEndToEndDrain sends SIGTERM while a call waits for the model. The call must continue
// until it ends, or until a second signal.
func TestEndToEndDrain(t *testing.T) {
	for name, impatient := range map[string]bool{"one signal": false, "two signals": true} {
		t.Run(name, func(t *testing.T) {
			held := make(chan struct{})
			turn := providertest.Say("the answer")
			turn.Wait = held
			model := providertest.New(turn)
			t.Cleanup(model.Close)
			s := startHTTP(t, newFolders(t), model, "-c", "http.drain_timeout=1h")
			type result struct {
				status int
				body   string
				err    error
			}
			results := make(chan result, 1)
			go func() {
				status, body, err := s.call("work")
				results <- result{status, body, err}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := model.Await(ctx, 1); err != nil {
				t.Fatal(err)
			}
			if got := s.get("/readyz"); got != 200 {
				t.Errorf("/readyz before: %d", got)
			}
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			for s.get("/readyz") != 503 {
				if ctx.Err() != nil {
					t.Fatal("it does not drain")
				}
				<-time.After(10 * time.Millisecond)
			}
			if got := s.get("/healthz"); got != 200 {
				t.Errorf("/healthz while it drains: %d", got)
			}
			if status, body, err := s.call("more"); status != 503 || !strings.Contains(body, "nothing was started") {
				t.Errorf("a new call: %d %s %v", status, body, err)
			}
			select {
			case r := <-results:
				t.Fatalf("the call has ended: %+v", r)
			default:
			}
			if impatient {
				if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			} else {
				close(held)
			}
			select {
			case r := <-results:
				if strings.Contains(r.body, "the answer") == impatient || !impatient && r.status != 200 {
					t.Errorf("the call: %+v", r)
				}
			case <-ctx.Done():
				t.Fatal("the call does not end")
			}
			select {
			case <-s.exited:
				if s.code != 0 {
					t.Errorf("status %d", s.code)
				}
			case <-ctx.Done():
				t.Fatal("it does not end")
			}
			if n := len(model.Requests()); n != 1 {
				t.Errorf("the model was asked %d times", n)
			}
		})
	}
}

// TestEndToEndBehindProxy serves only the proxy.
func TestEndToEndBehindProxy(t *testing.T) {
	model := providertest.New()
	t.Cleanup(model.Close)
	for proxy, want := range map[string]int{"127.0.0.1": 200, "::ffff:127.0.0.1": 200, "192.0.2.1": 403} {
		t.Run(proxy, func(t *testing.T) {
			s := startHTTP(t, newFolders(t), model, "--behind-proxy", proxy)
			if got := s.get("/healthz"); got != want {
				t.Errorf("/healthz: %d, want %d", got, want)
			}
			// The server ignores addresses that a client writes in headers.
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/healthz", nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"X-Forwarded-For", "X-Real-IP", "Forwarded"} {
				r.Header.Set(name, "for=192.0.2.1")
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("/healthz with other addresses: %s, want %d", answer.Status, want)
			}
		})
	}
}

// TestEndToEndLockedArguments checks that calls with locked arguments are refused.
func TestEndToEndLockedArguments(t *testing.T) {
	model := providertest.New()
	t.Cleanup(model.Close)
	s := startHTTP(t, newFolders(t), model)
	for name, value := range map[string]string{
		"approval-policy": `"never"`, "config": `{"sandbox_mode":"danger-full-access"}`, "profile": `"loose"`,
		"sandbox": `"danger-full-access"`, "web-search": `true`,
	} {
		status, body, err := s.tool("codex", `{"prompt":"p","`+name+`":`+value+`}`)
		if status != 200 || err != nil || !strings.Contains(body, "argument /"+name+" is locked") {
			t.Errorf("%s: %d %s %v", name, status, body, err)
		}
	}
	if n := len(model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestEndToEndHTTPLog checks that the log has a line for a call, and no line with the prompt,
// the answer or the token.
func TestEndToEndHTTPLog(t *testing.T) {
	model := providertest.New(providertest.Say("an-answer"))
	t.Cleanup(model.Close)
	s := startHTTP(t, newFolders(t), model, "--log", "debug", "--log-format", "json")
	if status, body, err := s.call("a-prompt"); err != nil || status != http.StatusOK || !strings.Contains(body, "an-answer") {
		t.Fatalf("the call: %d %s %v", status, body, err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.wait()
	logged := 0
	for line := range strings.Lines(s.errors()) {
		var l struct{ Msg, Principal, Method, Tool string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "request" && l.Principal == "local" && l.Method == "tools/call" && l.Tool == "codex" {
			logged++
		}
	}
	if logged != 1 {
		t.Errorf("%d lines about the call", logged)
	}
	for _, secret := range []string{"a-prompt", "an-answer", s.token} {
		if strings.Contains(s.errors(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// TestEndToEndRevivedThread continues over HTTP a thread that had full access without
// questions on standard input and output.
func TestEndToEndRevivedThread(t *testing.T) {
	f := newFolders(t)
	made := filepath.Join(f.user, "made")
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		if n := len(r.ToolOutputs()); n == 1 && r.LastUserText() == "first" || n == 2 {
			return providertest.Say("done")
		}
		return providertest.Call(providertest.Shell("c-"+r.LastUserText(), "sh", "-c", "echo >> "+made))
	}})
	t.Cleanup(model.Close)
	if err := os.WriteFile(filepath.Join(f.home, "config.toml"), fmt.Appendf(nil, configOf, model.BaseURL()), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, f, "-engine", "native")
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"first","sandbox":"danger-full-access","approval-policy":"never"}}}`)
	answer := p.expect(map[string]any{"id": 1.0, "result": "*"}, map[int]bool{})
	thread, _ := answer["result"].(map[string]any)["structuredContent"].(map[string]any)["threadId"].(string)
	p.stdin.Close()
	p.wait()
	if text, err := os.ReadFile(made); err != nil || len(text) != 1 {
		t.Fatalf("the first command wrote %q, %v", text, err)
	}
	s := startHTTP(t, f, model, "-c", "sandbox_mode=read-only", "-c", "approval_policy=never")
	status, body, err := s.tool("codex-reply", `{"threadId":"`+thread+`","prompt":"second"}`)
	if status != 200 || err != nil || !strings.Contains(body, "done") {
		t.Errorf("%d %s %v", status, body, err)
	}
	if text, err := os.ReadFile(made); err != nil || len(text) != 1 {
		t.Errorf("the second command wrote: %q, %v", text, err)
	}
}
